//! [`Verdict`]: what a validating webhook says of an object.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use crate::kind::KindInfo;

/// Whether an object may be stored, what is wrong with it, and what to warn about.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a verdict does nothing until it is returned"]
pub struct Verdict {
    causes: Vec<Cause>,
    denial: Option<String>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Cause {
    reason: &'static str,
    field: String,
    message: String,
}

impl Verdict {
    /// Nothing is wrong, so far.
    pub fn allow() -> Self {
        Self::default()
    }

    /// No, for a reason that concerns no field: the client gets a 403.
    pub fn deny(why: impl Into<String>) -> Self {
        Self {
            denial: Some(why.into()),
            ..Self::default()
        }
    }

    /// A sentence for whoever made the request, whatever the verdict.
    pub fn warn(&mut self, warning: impl Into<String>) -> &mut Self {
        self.warnings.push(warning.into());
        self
    }

    /// A field's value is wrong.
    pub fn invalid(
        &mut self,
        field: impl Into<String>,
        value: impl Into<Value>,
        why: impl Display,
    ) -> &mut Self {
        let message = format!("Invalid value: {}: {why}", value.into());
        self.cause("FieldValueInvalid", field, message)
    }

    /// A field is missing.
    pub fn require(&mut self, field: impl Into<String>, why: impl Display) -> &mut Self {
        self.cause(
            "FieldValueRequired",
            field,
            format!("Required value: {why}"),
        )
    }

    /// A field may not be set, or not be changed.
    pub fn forbid(&mut self, field: impl Into<String>, why: impl Display) -> &mut Self {
        self.cause("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// A value stands twice where it may stand once.
    pub fn duplicate(&mut self, field: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        let message = format!("Duplicate value: {}", value.into());
        self.cause("FieldValueDuplicate", field, message)
    }

    /// A value is none of those that are known.
    pub fn unsupported(
        &mut self,
        field: impl Into<String>,
        value: impl Into<Value>,
        known: &[&str],
    ) -> &mut Self {
        let known: Vec<String> = known.iter().map(|one| format!("\"{one}\"")).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            value.into(),
            known.join(", ")
        );
        self.cause("FieldValueNotSupported", field, message)
    }

    /// Takes over what another says as well.
    pub fn and(&mut self, other: Self) -> &mut Self {
        self.causes.extend(other.causes);
        self.warnings.extend(other.warnings);
        self.denial = self.denial.take().or(other.denial);
        self
    }

    /// Whether nothing speaks against the object.
    pub fn is_allowed(&self) -> bool {
        self.causes.is_empty() && self.denial.is_none()
    }

    fn cause(
        &mut self,
        reason: &'static str,
        field: impl Into<String>,
        message: String,
    ) -> &mut Self {
        self.causes.push(Cause {
            reason,
            field: field.into(),
            message,
        });
        self
    }

    /// The response of an admission review, but for its uid.
    pub(super) fn response(&self, kind: &KindInfo, name: &str) -> Value {
        let mut response = json!({"allowed": self.is_allowed()});
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        if !self.is_allowed() {
            response["status"] = self.status(kind, name);
        }
        response
    }

    fn status(&self, kind: &KindInfo, name: &str) -> Value {
        let (code, reason, message) = match &self.denial {
            Some(why) => (403, "Forbidden", why.clone()),
            None => (422, "Invalid", self.sentence(kind, name)),
        };
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "field": cause.field, "message": cause.message}))
            .collect();
        let mut details = Map::new();
        details.insert("kind".into(), kind.kind.as_str().into());
        for (field, text) in [("group", kind.group.as_str()), ("name", name)] {
            if !text.is_empty() {
                details.insert(field.into(), text.into());
            }
        }
        if !causes.is_empty() {
            details.insert("causes".into(), causes.into());
        }
        json!({"status": "Failure", "code": code, "reason": reason, "message": message, "details": details})
    }

    /// All that is wrong in one sentence, as the API server words it.
    fn sentence(&self, kind: &KindInfo, name: &str) -> String {
        let group = match kind.group.as_str() {
            "" => String::new(),
            group => format!(".{group}"),
        };
        let all: Vec<String> = self
            .causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let all = match all.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        format!("{}{group} \"{name}\" is invalid: {all}", kind.kind)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    #[test]
    fn everything_wrong_is_told_at_once() {
        let mut verdict = Verdict::allow();
        verdict
            .invalid("spec.size", 0, "must be at least 1")
            .forbid("spec.name", "may not change")
            .warn("size is going away");
        let response = verdict.response(&KindInfo::of::<Deployment>(), "web");
        assert_eq!(response["allowed"], false);
        assert_eq!(response["warnings"], json!(["size is going away"]));
        assert_eq!(
            response["status"]["message"],
            "Deployment.apps \"web\" is invalid: [spec.size: Invalid value: 0: must be at least 1, \
             spec.name: Forbidden: may not change]"
        );
        assert_eq!(
            response["status"]["details"]["causes"][1]["field"],
            "spec.name"
        );
        assert_eq!(response["status"]["code"], 422);
    }
}
