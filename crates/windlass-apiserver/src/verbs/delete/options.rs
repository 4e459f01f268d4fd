//! What a delete is asked to do: `DeleteOptions`, of the body and of the query.

use serde_json::{Value, json};

use crate::status::{self, ApiError, Result, field};
use crate::verbs::{Call, body, options, parse_int};

/// What a delete was asked to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) grace: Option<i64>,
    pub(super) propagation: Option<String>,
    pub(super) orphan_dependents: Option<bool>,
    pub(super) uid: Option<String>,
    pub(in crate::verbs) revision: Option<String>,
}

impl Options {
    /// What a `DeleteOptions` says, and whether nothing is to be stored.
    pub(in crate::verbs) fn from_body(body: &Value) -> Result<(Self, bool)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let options = Self {
            grace: body["gracePeriodSeconds"].as_i64(),
            propagation: text(&body["propagationPolicy"]),
            orphan_dependents: body["orphanDependents"].as_bool(),
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
        };
        let asked = body["dryRun"].as_array().into_iter().flatten();
        let asked: Vec<&str> = asked.filter_map(Value::as_str).collect();
        let dry_run = options::dry_run(&asked)
            .map_err(|cause| options::invalid("DeleteOptions", &[cause]))?;
        Ok((options, dry_run))
    }

    pub(super) fn read(call: &Call<'_>) -> Result<(Self, bool)> {
        let mut options = Self::default();
        let mut dry_run = call.dry_run;
        if !call.body.is_empty() {
            let body = delete_options(call)?;
            let (read, asked_dry) = Self::from_body(&body)?;
            options = read;
            dry_run |= asked_dry;
        }
        if let Some(grace) = call.query.get("gracePeriodSeconds") {
            options.grace = Some(parse_int(grace)?);
        }
        if let Some(policy) = call.query.get("propagationPolicy") {
            options.propagation = Some(policy.to_owned());
        }
        if let Some(policy) = options.propagation.as_deref() {
            let cause = if options.orphan_dependents.is_some() {
                Some(field::invalid(
                    "propagationPolicy",
                    &policy.into(),
                    "orphanDependents and deletionPropagation cannot be both set",
                ))
            } else if matches!(policy, "Foreground" | "Background" | "Orphan") {
                None
            } else {
                let allowed = ["Foreground", "Background", "Orphan", "nil"]
                    .map(|policy| format!("\"{policy}\""));
                Some(field::not_supported(
                    "propagationPolicy",
                    &policy.into(),
                    &allowed,
                ))
            };
            if let Some(cause) = cause {
                let subject = status::Subject {
                    group: "meta.k8s.io",
                    kind: "DeleteOptions",
                };
                return Err(ApiError::invalid(subject, "", &[cause]));
            }
        }
        Ok((options, dry_run))
    }

    /// The options as webhooks see them.
    pub(super) fn shown(&self, dry_run: bool) -> Value {
        let mut shown = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        let mut set = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                shown[field] = value;
            }
        };
        set("gracePeriodSeconds", self.grace.map(Value::from));
        set("orphanDependents", self.orphan_dependents.map(Value::from));
        set(
            "propagationPolicy",
            self.propagation.clone().map(Value::from),
        );
        set("dryRun", dry_run.then(|| json!(["All"])));
        let mut preconditions = serde_json::Map::new();
        if let Some(uid) = &self.uid {
            preconditions.insert("uid".into(), uid.as_str().into());
        }
        if let Some(revision) = &self.revision {
            preconditions.insert("resourceVersion".into(), revision.as_str().into());
        }
        let preconditions = Value::Object(preconditions);
        set(
            "preconditions",
            Some(preconditions).filter(|all| *all != json!({})),
        );
        shown
    }
}

/// The body of a delete.
fn delete_options(call: &Call<'_>) -> Result<Value> {
    let body = body::decode_as(call, "DeleteOptions").map_err(|mut error| {
        // Said as of any kind: what it should be was not asked.
        if let Some(at) = error.message.find("couldn't get version/kind") {
            let end = error.message.rfind(" (").unwrap_or(error.message.len());
            error.message = error.message[at..end].to_owned();
        }
        error
    })?;
    let text = |field: &str| body.value[field].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(ApiError::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(body.value)
}
