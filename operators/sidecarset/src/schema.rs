//! The schemas of what is Kubernetes' own: selectors, containers and volumes, with the API's rules
//! and defaults.
//!
//! The fields of a container are those of any version of Kubernetes: all are kept, and those without
//! a rule here are validated by the API server when they are put into a pod. Defaults are set when a
//! set is stored, so that a set whose author leaves something out and one whose author writes the
//! default are the same, and a pod has what the set says.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

const RULES: &str = "x-kubernetes-validations";

/// A selector that is valid and not empty.
pub(crate) fn selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = LabelSelector::json_schema(generator);
    let rules = json!([
        {
            "rule": "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "message": "an empty selector would match every pod",
        },
        {
            "rule": "!has(self.matchExpressions) || self.matchExpressions.all(one, one.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",
            "message": "an operator must be In, NotIn, Exists or DoesNotExist",
        },
    ]);
    schema.insert(RULES.to_owned(), rules);
    if let Some(requirement) = schema.pointer_mut("/properties/matchExpressions/items") {
        requirement[RULES] = json!([{
            "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "message": "must be specified for the operators In and NotIn, and for no other",
            "fieldPath": ".values",
        }]);
    }
    schema
}

/// A container.
pub(crate) fn container(_: &mut SchemaGenerator) -> Schema {
    let probe = json!({
        "timeoutSeconds": number(1),
        "periodSeconds": number(10),
        "successThreshold": number(1),
        "failureThreshold": number(3),
        "httpGet": object(&[], &json!({ "path": text("/"), "scheme": text("HTTP") })),
    });
    let field_ref = object(&[], &json!({ "apiVersion": text("v1") }));
    let variable = json!({
        "name": { "type": "string", "pattern": "^[^=]+$" },
        "valueFrom": object(&[], &json!({ "fieldRef": field_ref })),
    });
    let port = json!({
        "containerPort": { "type": "integer", "minimum": 1, "maximum": 65535 },
        "protocol": { "type": "string", "enum": ["SCTP", "TCP", "UDP"], "default": "TCP" },
    });
    let mount = json!({ "mountPath": { "type": "string", "minLength": 1 } });
    let properties = json!({
        "name": name(),
        "image": { "type": "string", "minLength": 1 },
        "imagePullPolicy": { "type": "string", "enum": ["Always", "IfNotPresent", "Never"] },
        "terminationMessagePath": text("/dev/termination-log"),
        "terminationMessagePolicy": text("File"),
        "livenessProbe": object(&[], &probe),
        "readinessProbe": object(&[], &probe),
        "startupProbe": object(&[], &probe),
        "ports": list(&object(&["containerPort"], &port)),
        "env": list(&object(&["name"], &variable)),
        "volumeMounts": list(&object(&["name", "mountPath"], &mount)),
    });
    object(&["name", "image"], &properties)
}

/// A list of volumes.
pub(crate) fn volumes(_: &mut SchemaGenerator) -> Schema {
    let files = object(&[], &json!({ "defaultMode": number(0o644) }));
    let volume = json!({
        "name": name(),
        "configMap": files,
        "secret": files,
        "projected": files,
        "downwardAPI": files,
        "hostPath": object(&[], &json!({ "type": text("") })),
    });
    list(&object(&["name"], &volume))
}

/// An object of which only these fields have rules or defaults.
fn object(required: &[&str], properties: &Value) -> Schema {
    json_schema!({
        "type": "object",
        "required": required,
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": properties,
    })
}

fn list(items: &Schema) -> Schema {
    json_schema!({ "type": "array", "items": items })
}

fn text(default: &str) -> Value {
    json!({ "type": "string", "default": default })
}

fn number(default: i32) -> Value {
    json!({ "type": "integer", "default": default })
}

/// The name of a container or volume.
fn name() -> Value {
    json!({ "type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" })
}
