//! `CertificateSigningRequest`: what is asked for is for good, and deciding is a subresource.

mod decision;
mod signer;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::clock::Clock;
use crate::kinds::{Fields, Strategy, Writing};
use crate::status::Result;
use crate::table::duration;
use crate::table::text::text;
use crate::validation::at::Causes;

use crate::webhook::Attributes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CertificateSigningRequest;

impl Strategy for CertificateSigningRequest {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_status(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn check_subresource(&self, new: &Value, old: &Value, subresource: &str, causes: &mut Causes) {
        if subresource == "approval" {
            validation::check_approval(new, old, causes);
        }
    }

    fn admit_write(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        signer::validate(attributes, object)
    }

    fn reset_fields(&self, subresource: &str, _: bool) -> Fields {
        decision::reset_fields(subresource)
    }

    fn prepare_create(&self, object: &mut Value, writing: &Writing<'_>) -> Vec<String> {
        decision::set_requester(object, writing.who);
        Vec::new()
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        new["spec"] = old["spec"].clone();
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        decision::keep_decisions(new, old);
    }

    fn prepare_subresource(&self, new: &mut Value, old: &Value, subresource: &str) -> bool {
        let is_own = subresource == "approval";
        if is_own {
            decision::keep_all_but_conditions(new, old);
        }
        is_own
    }

    fn set_times(&self, new: &mut Value, old: &Value, subresource: &str, clock: &Clock) {
        if matches!(subresource, "status" | "approval") {
            decision::set_times(new, old, &clock.now_seconds());
        }
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "SignerName" => text(&spec["signerName"]).into(),
            "Requestor" => text(&spec["username"]).into(),
            "RequestedDuration" => match spec["expirationSeconds"].as_i64() {
                Some(seconds) => duration(seconds).into(),
                None => "<none>".into(),
            },
            "Condition" => condition(object).into(),
            _ => return None,
        })
    }
}

fn condition(request: &Value) -> String {
    let conditions = request["status"]["conditions"].as_array();
    let has = |kind: &str| conditions.is_some_and(|all| all.iter().any(|one| one["type"] == kind));
    let mut shown: Vec<&str> = ["Denied", "Approved"]
        .into_iter()
        .filter(|kind| has(kind))
        .take(1)
        .collect();
    if shown.is_empty() {
        shown.push("Pending");
    }
    if has("Failed") {
        shown.push("Failed");
    }
    if !text(&request["status"]["certificate"]).is_empty() {
        shown.push("Issued");
    }
    shown.join(",")
}
