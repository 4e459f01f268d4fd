//! List: whole, in pages, at a version, as objects, metadata or a table.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::Call;
use super::present::{is_stored_form, list_item, stored_metadata_only};
use crate::http::{Answer, Shape};
use crate::json::go_error;
use crate::selector::Selector;
use crate::status::{ApiError, Result, field};
use crate::store::{Key, RevisionError, Stored};
use crate::table;
use crate::webhook;

/// Where a paged list goes on.
struct Continue {
    revision: u64,
    after: Key,
}

impl Continue {
    fn encode(&self) -> String {
        let token = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "ns": self.after.namespace(), "start": self.after.name()});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(token: &str) -> Result<Self> {
        let invalid = |why: String| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(token)
            .map_err(|error| invalid(error.to_string()))?;
        let token: Value =
            serde_json::from_slice(&bytes).map_err(|error| invalid(go_error(&error, &bytes)))?;
        let read = || -> Option<Self> {
            let after = Key::new(token["ns"].as_str()?, token["start"].as_str()?);
            Some(Self {
                revision: token["rv"].as_u64()?,
                after,
            })
        };
        read().ok_or_else(|| {
            invalid(format!(
                "server does not recognize this encoded version {}",
                token["v"]
            ))
        })
    }
}

/// What a list with these parameters is true for.
enum At {
    Now,
    Exactly(u64),
    NotOlderThan(u64),
}

impl Call<'_> {
    /// The version the query names, or why it is none.
    pub(super) fn version_asked(&self) -> Result<Option<u64>, String> {
        let Some(text) = self.query.get("resourceVersion") else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
        })
    }

    fn version_wanted(&self) -> Result<At> {
        let matching = self.query.get("resourceVersionMatch");
        let version = self.query.get("resourceVersion");
        let mut causes = Vec::new();
        let mut forbid = |path: &str, why: &str| causes.push(field::forbidden(path, why));
        match (matching, version) {
            (Some(_), None) => forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (Some("Exact"), Some("0")) => forbid(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ),
            (Some("Exact" | "NotOlderThan") | None, _) => {}
            (Some(other), Some(_)) => {
                let allowed = ["Exact", "NotOlderThan", ""].map(|one| format!("\"{one}\""));
                causes.push(field::not_supported(
                    "resourceVersionMatch",
                    &other.into(),
                    &allowed,
                ));
            }
        }
        if self.query.get("sendInitialEvents").is_some() {
            causes.push(field::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        if !causes.is_empty() {
            return Err(super::invalid_options("ListOptions", &causes));
        }
        let version = self
            .version_asked()
            .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
        Ok(match (matching, version) {
            (None, None | Some(0)) => At::Now,
            (Some("Exact"), Some(version)) => At::Exactly(version),
            (_, version) => At::NotOlderThan(version.unwrap_or_default()),
        })
    }

    pub(super) async fn list(&self) -> Result<Answer> {
        let selector = Selector::from_query(&self.query, &self.resource)?;
        let limit = match self.query.get("limit") {
            None => 0,
            Some(limit) => usize::try_from(super::parse_int(limit)?).unwrap_or_default(),
        };
        if let Some(seconds) = self.query.get("timeoutSeconds") {
            super::parse_int(seconds)?;
        }
        let namespace = self.request.namespace.as_deref();
        let store = self.server.store();
        let (after, revision) = match self.query.get("continue") {
            Some(token) => {
                if self
                    .query
                    .get("resourceVersion")
                    .is_some_and(|version| version != "0")
                {
                    return Err(ApiError::bad_request(
                        "specifying resource version is not allowed when using continue",
                    ));
                }
                let token = Continue::decode(token)?;
                (Some(token.after), Some(token.revision))
            }
            None => match self.version_wanted()? {
                At::Exactly(version) => (None, Some(version)),
                At::NotOlderThan(version) if version > store.revision() => {
                    return Err(too_large(version, store.revision()));
                }
                At::Now | At::NotOlderThan(_) => (None, None),
            },
        };
        let listing = store.list(&self.resource.table, namespace, after.as_ref(), revision).map_err(|error| match error {
            RevisionError::Future => too_large(revision.unwrap_or_default(), store.revision()),
            RevisionError::Compacted(_) if after.is_some() => ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
            ),
            RevisionError::Compacted(_) => ApiError::expired("The resourceVersion for the provided list is too old."),
        })?;
        let mut matching = listing
            .objects
            .into_iter()
            .filter(|object| selector.matches(object));
        let page: Vec<Arc<Stored>> = if limit == 0 {
            matching.by_ref().collect()
        } else {
            matching.by_ref().take(limit).collect()
        };
        let rest = if limit == 0 { 0 } else { matching.count() };
        let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
        if self.resource.is_custom() && self.wanted.shape == Shape::Object {
            metadata["continue"] = "".into();
        }
        if let Some(last) = page.last().filter(|_| rest > 0) {
            metadata["continue"] = Continue {
                revision: listing.revision,
                after: last.key.clone(),
            }
            .encode()
            .into();
            if selector.is_everything() {
                metadata["remainingItemCount"] = rest.into();
            }
        }
        self.present_list(&page, &metadata).await
    }

    /// The objects of a page as values of the version asked for, converted all at once.
    async fn page_values(&self, page: &[Arc<Stored>]) -> Result<Vec<Value>> {
        let values: Vec<Value> = page.iter().map(|object| object.value()).collect();
        if self.resource.is_custom() {
            let api_version = self.resource.api_version();
            return webhook::convert(self.server, &self.resource, &api_version, values).await;
        }
        let mut converted = Vec::with_capacity(values.len());
        for value in values {
            converted.push(self.to_requested(value).await?);
        }
        Ok(converted)
    }

    async fn present_list(&self, page: &[Arc<Stored>], metadata: &Value) -> Result<Answer> {
        Ok(match self.wanted.shape {
            Shape::Object => {
                let head = json!({"kind": self.resource.list_kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
                // The items are the stored bytes themselves, between a head and a foot.
                let mut head = head.to_string();
                head.truncate(head.len() - 1);
                head.push_str(",\"items\":[");
                let mut pieces = Vec::with_capacity(3 * page.len() + 2);
                pieces.push(Bytes::from(head));
                let mut converted = if is_stored_form(&self.resource) {
                    Vec::new().into_iter()
                } else {
                    self.page_values(page).await?.into_iter()
                };
                for (index, object) in page.iter().enumerate() {
                    if index > 0 {
                        pieces.push(Bytes::from_static(b","));
                    }
                    if !is_stored_form(&self.resource) {
                        let item = converted.next().unwrap_or_default();
                        pieces.push(list_item(item, &self.resource).to_string().into());
                    } else if self.resource.is_custom() {
                        pieces.push(object.json.clone());
                    } else {
                        pieces.push(Bytes::from_static(b"{"));
                        pieces.push(object.members());
                    }
                }
                pieces.push(Bytes::from_static(b"]}\n"));
                Answer::json(pieces)
            }
            Shape::Metadata => Answer::value(json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": page.iter().map(|object| stored_metadata_only(&object.json)).collect::<Vec<_>>(),
            })),
            Shape::Table => Answer::value(table::of(
                &self.resource,
                &self.page_values(page).await?,
                metadata,
                self.table_options(),
            )),
        })
    }
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
