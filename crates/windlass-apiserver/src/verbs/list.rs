//! List: whole, in pages, at a version, as objects, metadata or a table.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::Call;
use super::present::{is_stored_form, list_item, metadata_only, object_bytes};
use super::write::to_requested;
use crate::http::{Answer, Shape};
use crate::selector::Selector;
use crate::status::{ApiError, Result};
use crate::store::{Key, RevisionError, Stored};
use crate::table;

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
        let read = || -> Option<Self> {
            let token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
            let after = Key::new(token["ns"].as_str()?, token["start"].as_str()?);
            Some(Self {
                revision: token["rv"].as_u64()?,
                after,
            })
        };
        read().ok_or_else(|| ApiError::bad_request(format!("continue key is not valid: {token:?}")))
    }
}

/// What a list with these parameters is true for.
enum At {
    Now,
    Exactly(u64),
    NotOlderThan(u64),
}

impl Call<'_> {
    fn version_wanted(&self) -> Result<At> {
        let version = match self.query.get("resourceVersion") {
            None => None,
            Some(text) => Some(text.parse::<u64>().map_err(|_| {
                ApiError::bad_request(format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"))
            })?),
        };
        match (self.query.get("resourceVersionMatch"), version) {
            (None, None | Some(0)) => Ok(At::Now),
            (None, Some(version)) => Ok(At::NotOlderThan(version)),
            (Some(_), None) => {
                let cause = crate::status::field::forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                );
                Err(ApiError::invalid(list_options(), "", &[cause]))
            }
            (Some("NotOlderThan"), Some(version)) => Ok(At::NotOlderThan(version)),
            (Some("Exact"), Some(version)) if version > 0 => Ok(At::Exactly(version)),
            (Some("Exact"), Some(_)) => {
                let cause = crate::status::field::forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                );
                Err(ApiError::invalid(list_options(), "", &[cause]))
            }
            (Some(other), Some(_)) => {
                let allowed = [
                    "\"Exact\"".to_owned(),
                    "\"NotOlderThan\"".to_owned(),
                    "\"\"".to_owned(),
                ];
                let cause = crate::status::field::not_supported(
                    "resourceVersionMatch",
                    &other.into(),
                    &allowed,
                );
                Err(ApiError::invalid(list_options(), "", &[cause]))
            }
        }
    }

    pub(super) fn list(&self) -> Result<Answer> {
        let selector = Selector::from_query(&self.query, &self.resource)?;
        let limit = self
            .query
            .get("limit")
            .and_then(|limit| limit.parse::<usize>().ok())
            .unwrap_or_default();
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
                At::Now => (None, None),
                At::Exactly(version) => (None, Some(version)),
                At::NotOlderThan(version) if version > store.revision() => {
                    return Err(too_large(version, store.revision()));
                }
                At::NotOlderThan(_) => (None, None),
            },
        };
        let listing = store.list(&self.resource.table, namespace, after.as_ref(), revision).map_err(|error| match error {
            RevisionError::Future => too_large(revision.unwrap_or_default(), store.revision()),
            RevisionError::Compacted if after.is_some() => ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
            ),
            RevisionError::Compacted => ApiError::expired(format!("The resourceVersion for the provided list is too old.")),
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
        if self.resource.is_custom() {
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
        self.present_list(&page, metadata)
    }

    fn present_list(&self, page: &[Arc<Stored>], metadata: Value) -> Result<Answer> {
        let values = || {
            page.iter()
                .map(|object| to_requested(object.value(), &self.resource))
        };
        match self.wanted.shape {
            Shape::Object => {
                let head = json!({"kind": self.resource.list_kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
                // The items are the stored bytes themselves, between a head and a foot.
                let mut head = head.to_string();
                head.truncate(head.len() - 1);
                head.push_str(",\"items\":[");
                let mut pieces = Vec::with_capacity(3 * page.len() + 2);
                pieces.push(Bytes::from(head));
                for (index, object) in page.iter().enumerate() {
                    if index > 0 {
                        pieces.push(Bytes::from_static(b","));
                    }
                    if self.resource.is_custom() {
                        pieces.push(object_bytes(&object.json, &self.resource));
                    } else if is_stored_form(&self.resource) {
                        pieces.push(Bytes::from_static(b"{"));
                        pieces.push(object.members());
                    } else {
                        let item = list_item(self.to_requested(object.value()), &self.resource);
                        pieces.push(Bytes::from(item.to_string()));
                    }
                }
                pieces.push(Bytes::from_static(b"]}\n"));
                Ok(Answer::json(pieces))
            }
            Shape::Metadata => Ok(Answer::value(json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": values().map(metadata_only).collect::<Vec<_>>(),
            }))),
            Shape::Table => Ok(Answer::value(table::of(
                &self.resource,
                &values().collect::<Vec<_>>(),
                metadata,
                self.table_options(),
            ))),
        }
    }
}

fn list_options() -> crate::status::Subject<'static> {
    crate::status::Subject {
        group: "meta.k8s.io",
        kind: "ListOptions",
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
