//! `OpenAPI`: what the server tells of its types and operations, made from the table of facts and the
//! schemas of CRDs, with the texts of `description`. `v3` has a document per group and version; `v2` is one document of everything, in
//! JSON or as the protobuf message that client-go asks for (`gnostic`).

mod custom;
mod description;
mod gnostic;
mod v2;
mod v3;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};

use crate::http::Answer;
use crate::registry::Known;

pub(crate) use v3::{document, index};

/// The media type of the protobuf form, and the one that clients ask for it with.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The document of version 2 as it was last made: it is large, and asked for by few.
#[derive(Default)]
pub(crate) struct Whole(Mutex<Option<Made>>);

struct Made {
    /// What was served then.
    known: Arc<Known>,
    json: Bytes,
    /// Made when it is first asked for.
    protobuf: Option<Bytes>,
}

impl Whole {
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
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
}
