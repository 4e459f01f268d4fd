//! List: whole, in pages, at a version, as objects, metadata or a table.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use bytes::Bytes;
use serde_json::{Value, json};

use super::Call;
use super::form::all_to_requested;
use super::options::parse_int;
use super::present::{self, is_stored_form, list_item, stored_metadata_only};
use crate::hooks::StaleRead;
use crate::http::{Answer, Query, Shape};
use crate::json::go_error;
use crate::status::{ApiError, Cause, Result, field};
use crate::store::{Key, Listing, RevisionError, Stored};
use crate::table;
use crate::verbs::selector::Selector;

/// How tokens are written. Bits left over at the end are nobody's business, as in Go.
const TOKEN: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Where a paged list goes on.
struct Continue {
    /// The snapshot it reads; the present when there is none.
    revision: Option<u64>,
    after: Key,
}

/// The version of a token whose list goes on with what is there now.
const INCONSISTENT: i64 = -1;

impl Continue {
    fn after(key: &Key, revision: Option<u64>) -> String {
        let version = revision.map_or_else(|| json!(INCONSISTENT), |revision| json!(revision));
        let token = json!({"v": "meta.k8s.io/v1", "rv": version, "ns": key.namespace(), "start": key.name()});
        TOKEN.encode(token.to_string())
    }

    fn decode(token: &str) -> Result<Self> {
        let invalid = |why: String| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = TOKEN
            .decode(token)
            .map_err(|error| invalid(error.to_string()))?;
        let token: Value =
            serde_json::from_slice(&bytes).map_err(|error| invalid(go_error(&error, &bytes)))?;
        let text = |field: &str| token[field].as_str().unwrap_or_default();
        if text("v") != "meta.k8s.io/v1" {
            return Err(invalid(format!(
                "server does not recognize this encoded version {}",
                text("v")
            )));
        }
        if text("start").is_empty() {
            return Err(invalid(
                "encoded start key empty (version meta.k8s.io/v1)".to_owned(),
            ));
        }
        Ok(Self {
            revision: token["rv"].as_u64(),
            after: Key::new(text("ns"), text("start")),
        })
    }
}

/// What a list with these parameters is true for.
enum At {
    Now,
    Exactly(u64),
    NotOlderThan(u64),
}

/// A text that is no version.
#[derive(Debug, thiserror::Error)]
#[error("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}")]
pub(super) struct VersionError {
    text: String,
    why: &'static str,
}

impl From<VersionError> for ApiError {
    fn from(error: VersionError) -> Self {
        Self::without_reason(error.to_string())
    }
}

/// The version the query names.
pub(super) fn version_asked(query: &Query) -> std::result::Result<Option<u64>, VersionError> {
    let Some(text) = query.get("resourceVersion") else {
        return Ok(None);
    };
    let why = match text.parse() {
        Ok(version) => return Ok(Some(version)),
        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => "value out of range",
        Err(_) => "invalid syntax",
    };
    let text = text.to_owned();
    Err(VersionError { text, why })
}

fn version_wanted(query: &Query, limit: usize) -> Result<At> {
    let matching = query.get("resourceVersionMatch");
    let version = query.get("resourceVersion");
    let mut causes = Vec::new();
    let mut forbid = |path: &str, why: &str| causes.push(field::forbidden(path, why));
    match (matching, version) {
        (Some(matching), None) => {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
            if !matches!(matching, "Exact" | "NotOlderThan") {
                causes.push(unknown_match(matching));
            }
        }
        (Some(_), Some(_)) if query.get("continue").is_some() => forbid(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        ),
        (Some("Exact"), Some("0")) => forbid(
            "resourceVersionMatch",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (Some("Exact" | "NotOlderThan") | None, _) => {}
        (Some(other), Some(_)) => causes.push(unknown_match(other)),
    }
    if query.get("sendInitialEvents").is_some() {
        causes.push(field::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    if !causes.is_empty() {
        return Err(super::options::invalid("ListOptions", &causes));
    }
    let version = version_asked(query)
        .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
    Ok(match (matching, version) {
        (None, None | Some(0)) => At::Now,
        // A page of a version is of that very version, unless said otherwise.
        (None, Some(version)) if limit > 0 => At::Exactly(version),
        (Some("Exact"), Some(version)) => At::Exactly(version),
        (_, version) => At::NotOlderThan(version.unwrap_or_default()),
    })
}

pub(super) async fn run(call: &Call<'_>) -> Result<Answer> {
    let limit = match call.query.get("limit") {
        // What happens to be there is answered whole.
        _ if call.query.get("resourceVersion") == Some("0") => 0,
        None => 0,
        Some(limit) => usize::try_from(parse_int(limit)?).unwrap_or_default(),
    };
    if let Some(seconds) = call.query.get("timeoutSeconds") {
        parse_int(seconds)?;
    }
    // Options that do not fit together are told of before fields that cannot be selected.
    Selector::check_syntax(&call.query)?;
    version_wanted(&call.query, limit)?;
    let selector = Selector::from_query(&call.query, &call.resource)?;
    let listing = read(call, limit)?;
    let mut page: Vec<Arc<Stored>> = Vec::new();
    let mut objects = listing.objects;
    if let Some(name) = selector.only_name() {
        // Only that one is read.
        objects.retain(|object| object.key.name() == name);
    }
    let mut rest = objects.into_iter();
    for object in rest.by_ref() {
        if selector.matches(&object) {
            page.push(object);
        }
        if limit > 0 && page.len() == limit {
            break;
        }
    }
    // Whether what is left matches is not looked at.
    let rest = rest.len();
    let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
    if call.resource.is_custom() && call.wanted.shape == Shape::Object {
        metadata["continue"] = "".into();
    }
    if let Some(last) = page.last().filter(|_| rest > 0) {
        let revision = Some(listing.revision);
        metadata["continue"] = Continue::after(&last.key, revision).into();
        if selector.is_everything() {
            metadata["remainingItemCount"] = rest.into();
        }
    }
    present_list(call, &page, &metadata).await
}

/// The objects that the query's version, or its continue token, stands for.
/// What was there at the past revision that a hook chooses, of a read whose client accepts one.
pub(super) fn of_the_past(call: &Call<'_>, not_older_than: u64) -> Option<Listing> {
    let hooks = call.server.hooks()?;
    let store = call.server.store();
    let newest = store.revision();
    let chosen = hooks.revision_of(StaleRead {
        who: call.who,
        request: call.request,
        not_older_than,
        newest,
    })?;
    if !(not_older_than..newest).contains(&chosen) {
        return None;
    }
    let namespace = call.request.namespace.as_deref();
    let table = &call.resource.table;
    store
        .published()
        .list(table, namespace, None, Some(chosen))
        .ok()
}

fn read(call: &Call<'_>, limit: usize) -> Result<Listing> {
    let store = call.server.store();
    let namespace = call.request.namespace.as_deref();
    let at = version_wanted(&call.query, limit)?;
    let Some(token) = call.query.get("continue") else {
        let revision = match at {
            At::Exactly(version) => Some(version),
            At::NotOlderThan(version) if version > store.revision() => {
                return Err(too_large(version, store.revision()));
            }
            At::Now | At::NotOlderThan(_) => None,
        };
        let accepts_past = match at {
            At::NotOlderThan(version) => Some(version),
            At::Now if call.query.get("resourceVersion") == Some("0") => Some(0),
            At::Now | At::Exactly(_) => None,
        };
        if let Some(past) = accepts_past.and_then(|oldest| of_the_past(call, oldest)) {
            return Ok(past);
        }
        let listing = store
            .published()
            .list(&call.resource.table, namespace, None, revision);
        return listing.map_err(|error| match error {
            RevisionError::Future => too_large(revision.unwrap_or_default(), store.revision()),
            RevisionError::Compacted(_) => {
                ApiError::expired("The resourceVersion for the provided list is too old.")
            }
        });
    };
    if call
        .query
        .get("resourceVersion")
        .is_some_and(|version| version != "0")
    {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let token = Continue::decode(token)?;
    let listing = store.published().list(
        &call.resource.table,
        namespace,
        Some(&token.after),
        token.revision,
    );
    listing.map_err(|error| match error {
        RevisionError::Future => too_large(token.revision.unwrap_or_default(), store.revision()),
        RevisionError::Compacted(_) => expired_continue(&token),
    })
}

/// The objects of a page as values of the version asked for, converted all at once.
async fn page_values(call: &Call<'_>, page: &[Arc<Stored>]) -> Result<Vec<Value>> {
    let values: Vec<Value> = page.iter().map(|object| object.value()).collect();
    all_to_requested(call.server, &call.resource, values).await
}

async fn present_list(call: &Call<'_>, page: &[Arc<Stored>], metadata: &Value) -> Result<Answer> {
    Ok(match call.wanted.shape {
        Shape::Object => {
            let head = json!({"kind": call.resource.list_kind, "apiVersion": call.resource.api_version(), "metadata": metadata});
            // The items are the stored bytes themselves, between a head and a foot.
            let mut head = head.to_string();
            head.truncate(head.len() - 1);
            head.push_str(",\"items\":[");
            let mut pieces = Vec::with_capacity(3 * page.len() + 2);
            pieces.push(Bytes::from(head));
            let mut converted = if is_stored_form(&call.resource) {
                Vec::new().into_iter()
            } else {
                page_values(call, page).await?.into_iter()
            };
            for (index, object) in page.iter().enumerate() {
                if index > 0 {
                    pieces.push(Bytes::from_static(b","));
                }
                if !is_stored_form(&call.resource) {
                    let item = converted.next().unwrap_or_default();
                    pieces.push(list_item(item, &call.resource).to_string().into());
                } else if call.resource.is_custom() {
                    pieces.push(object.json.clone());
                } else {
                    pieces.push(Bytes::from_static(b"{"));
                    pieces.push(object.members());
                }
            }
            pieces.push(Bytes::from_static(b"]}\n"));
            Answer::json(pieces)
        }
        Shape::Metadata => {
            let kind = "PartialObjectMetadataList";
            let head = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
            let mut list = head.to_string().into_bytes();
            list.truncate(list.len() - 1);
            list.extend_from_slice(b",\"items\":");
            for (index, object) in page.iter().enumerate() {
                list.push(if index == 0 { b'[' } else { b',' });
                list.extend(stored_metadata_only(&object.json, &call.resource));
            }
            let end: &[u8] = if page.is_empty() { b"null}\n" } else { b"]}\n" };
            list.extend_from_slice(end);
            Answer::json(vec![list.into()])
        }
        Shape::Table => Answer::value(table::of(
            &call.resource,
            &page_values(call, page).await?,
            metadata,
            present::table_options(call),
        )),
    })
}

/// The snapshot of a token is gone: who can live with the rest as it is now gets a token for that.
fn expired_continue(token: &Continue) -> ApiError {
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. \
         You can start a new list without the continue parameter, or use the continue token in \
         this response to retrieve the remainder of the results. Continuing with the provided \
         token results in an inconsistent list - objects that were created, modified, or deleted \
         between the time the first chunk was returned and now may show up in the list.",
    );
    error.continuation = Some(Continue::after(&token.after, None));
    error
}

fn unknown_match(matching: &str) -> Cause {
    let allowed = ["Exact", "NotOlderThan", ""].map(|one| format!("\"{one}\""));
    field::not_supported("resourceVersionMatch", &matching.into(), &allowed)
}

/// A version that has not happened yet.
pub(super) fn too_large(wanted: u64, current: u64) -> ApiError {
    let mut error = ApiError::new(
        http::StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!("Timeout: Too large resource version: {wanted}, current: {current}"),
    );
    error.details = Some(json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }));
    error
}
