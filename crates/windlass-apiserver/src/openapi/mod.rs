//! `OpenAPI`: what the server tells of its types and operations, made from the table of facts and the
//! schemas of CRDs, with the texts of `description`. `v3` has a document per group and version; `v2` is one document of everything, in
//! JSON or as the protobuf message that client-go asks for (`gnostic`).

mod custom;
mod description;
mod gnostic;
mod v2;
mod v3;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};

use crate::http::Answer;
use crate::registry::Known;
use crate::status::Result;

pub(crate) use v3::index;

/// The media type of the protobuf form, and the one that clients ask for it with.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Documents as they were last made. They are large, and every answer is of the same bytes: clients
/// that read nothing hold no more of them.
#[derive(Default)]
pub(crate) struct Documents {
    whole: Mutex<Option<Made>>,
    groups: Mutex<Groups>,
}

/// The documents of version 3.
#[derive(Default)]
struct Groups {
    /// What was served when they were made.
    known: Option<Arc<Known>>,
    /// By group and version.
    made: BTreeMap<(String, String), Bytes>,
}

struct Made {
    /// What was served then.
    known: Arc<Known>,
    json: Bytes,
    /// Made when it is first asked for.
    protobuf: Option<Bytes>,
}

impl Documents {
    /// `/openapi/v2`, in the form that the client accepts.
    pub(crate) fn answer(&self, known: &Arc<Known>, headers: &HeaderMap) -> Answer {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let wants = |clause: &str| {
            let media_type = clause.split(';').next().unwrap_or_default().trim();
            match media_type {
                "application/json" | "application/*" | "*/*" => Some(false),
                PROTOBUF | ASKED => Some(true),
                _ => None,
            }
        };
        let wanted = match accept.filter(|accept| !accept.is_empty()) {
            None => Some(false),
            Some(accept) => accept.split(',').find_map(wants),
        };
        match wanted {
            None => Answer::text(StatusCode::NOT_ACCEPTABLE, ""),
            Some(protobuf) => self.made(known, protobuf),
        }
    }

    fn made(&self, known: &Arc<Known>, protobuf: bool) -> Answer {
        let mut kept = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match kept.take() {
            Some(made) if Arc::ptr_eq(&made.known, known) => made,
            _ => Made {
                known: known.clone(),
                json: v2::document(known).to_string().into(),
                protobuf: None,
            },
        };
        let made = kept.insert(made);
        if !protobuf {
            return Answer::json(vec![made.json.clone()]);
        }
        let bytes = made.protobuf.get_or_insert_with(|| {
            let document = serde_json::from_slice(&made.json).unwrap_or_default();
            gnostic::document(&document).into()
        });
        Answer::bytes(PROTOBUF, bytes.clone())
    }

    /// The document of one group and version.
    pub(crate) fn of_version(
        &self,
        known: &Arc<Known>,
        group: &str,
        version: &str,
    ) -> Result<Answer> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = groups.known.as_ref();
        if !is_current.is_some_and(|made| Arc::ptr_eq(made, known)) {
            groups.known = Some(known.clone());
            groups.made.clear();
        }
        let place = (group.to_owned(), version.to_owned());
        if let Some(json) = groups.made.get(&place) {
            return Ok(Answer::json(vec![json.clone()]));
        }
        let json = Bytes::from(v3::document(known, group, version)?.to_string());
        groups.made.insert(place, json.clone());
        Ok(Answer::json(vec![json]))
    }
}
