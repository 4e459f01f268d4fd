//! The options of a request, as its query gives them: checked before anything is done.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::decode::FieldValidation;
use crate::http::{Query, Verb};
use crate::patch::PatchKind;
use crate::status::{ApiError, Cause, Result, Subject, field};

/// The longest name of a field manager, in bytes.
const MANAGER_LENGTH: u64 = 128;

/// What the options of a write come to.
#[derive(Default)]
pub(super) struct Options {
    pub(super) dry_run: bool,
    pub(super) field_validation: FieldValidation,
}

impl Options {
    /// Reads them; all that is wrong with them is told at once. `media_type` is that of a patch.
    pub(super) fn read(query: &Query, verb: Verb, media_type: &str) -> Result<Self> {
        let mut causes = Vec::new();
        if verb == Verb::Patch {
            causes.extend(patch_causes(query, media_type));
        }
        if matches!(verb, Verb::Create | Verb::Update | Verb::Patch) {
            causes.extend(manager_causes(
                query.get("fieldManager").unwrap_or_default(),
            ));
        }
        let asked: Vec<&str> = query.all("dryRun").iter().map(String::as_str).collect();
        let dry_run = dry_run(&asked).unwrap_or_else(|cause| {
            causes.push(cause);
            false
        });
        let field_validation = FieldValidation::from_query(query).unwrap_or_else(|other| {
            let allowed = ["", "Ignore", "Strict", "Warn"].map(|value| format!("\"{value}\""));
            causes.push(field::not_supported(
                "fieldValidation",
                &other.into(),
                &allowed,
            ));
            FieldValidation::Warn
        });
        if !causes.is_empty() {
            return Err(invalid(kind(verb), &causes));
        }
        Ok(Self {
            dry_run,
            field_validation,
        })
    }
}

/// An apply says who applies, and alone may be forced.
fn patch_causes(query: &Query, media_type: &str) -> Option<Cause> {
    if PatchKind::is_apply(media_type) {
        let named = query.get("fieldManager").is_some();
        (!named).then(|| field::required("fieldManager", "is required for apply patch"))
    } else {
        let forced = query.get("force").is_some();
        forced.then(|| field::forbidden("force", "may not be specified for non-apply patch"))
    }
}

fn manager_causes(manager: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if manager.len() as u64 > MANAGER_LENGTH {
        causes.push(field::too_long("fieldManager", MANAGER_LENGTH));
    }
    for (at, char) in manager.char_indices() {
        if char.is_control() || (char.is_whitespace() && char != ' ') {
            let why = format!(
                "invalid character U+{:04X} (at position {at})",
                u32::from(char)
            );
            causes.push(field::invalid("fieldManager", &manager.into(), &why));
        }
    }
    causes
}

/// Whether nothing is to be stored: `All` is the only way to say so.
pub(super) fn dry_run(asked: &[&str]) -> Result<bool, Cause> {
    let said: BTreeSet<&str> = asked.iter().copied().collect();
    if said.iter().any(|one| *one != "All") {
        let asked = json!(asked);
        return Err(field::not_supported(
            "dryRun",
            &asked,
            &["\"All\"".to_owned()],
        ));
    }
    Ok(!said.is_empty())
}

/// The kind Kubernetes gives the options of a verb, which errors about them name.
pub(super) fn kind(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GetOptions",
        Verb::List | Verb::Watch => "ListOptions",
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
    }
}

/// What is wrong with the options of a request.
pub(super) fn invalid(kind: &'static str, causes: &[Cause]) -> ApiError {
    let subject = Subject {
        group: "meta.k8s.io",
        kind,
    };
    ApiError::invalid(subject, "", causes)
}

/// The options of a write as webhooks see them. A patch is an update, and what makes an object is a
/// create, however it came.
pub(super) fn shown(query: &Query, kind: &str) -> Value {
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    let dry_run = query.all("dryRun");
    if !dry_run.is_empty() {
        options["dryRun"] = json!(dry_run);
    }
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.get(field) {
            options[field] = value.into();
        }
    }
    options
}

/// A whole number of the query, with Go's words when it is none.
pub(crate) fn parse_int(text: &str) -> Result<i64> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
    })
}
