//! The values of Secrets never leave the operator: not even its queues hold them.

use serde_json::Value;

/// What stands where a value was. Names of values are kept.
const PLACEHOLDER: &str = "[redacted by kubewatch]";
/// The same where base64 is expected.
const ENCODED: &str = "W3JlZGFjdGVkIGJ5IGt1YmV3YXRjaF0=";
/// Holds the whole object, as it was last applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes the values out of every Secret in a document, wherever it is.
pub(crate) fn redact(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("kind").and_then(Value::as_str) == Some("Secret") {
                secret(value);
            } else {
                object.values_mut().for_each(redact);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

/// Takes the values out of a Secret.
pub(crate) fn secret(object: &mut Value) {
    for (field, placeholder) in [("data", ENCODED), ("stringData", PLACEHOLDER)] {
        match object.get_mut(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => {
                values
                    .values_mut()
                    .for_each(|value| *value = placeholder.into());
            }
            // Whatever else it holds is secret as well.
            Some(other) => *other = placeholder.into(),
        }
    }
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(applied) = annotations.and_then(|all| all.get_mut(LAST_APPLIED)) {
        *applied = PLACEHOLDER.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_secrets_are_taken_out_and_their_names_stay() {
        let mut list = json!({ "items": [
            { "kind": "Secret", "data": { "a": "aHVudGVyMg==" }, "stringData": { "b": "hunter2" },
              "metadata": { "annotations": { LAST_APPLIED: "hunter2", "c": "d" } } },
            { "kind": "Secret", "data": "hunter2" },
            { "kind": "ConfigMap", "data": { "a": "b" } },
        ] });
        redact(&mut list);
        let text = list.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
            "{text}"
        );
        assert_eq!(list["items"][0]["data"]["a"], ENCODED);
        assert_eq!(list["items"][0]["stringData"]["b"], PLACEHOLDER);
        assert_eq!(list["items"][0]["metadata"]["annotations"]["c"], "d");
        assert_eq!(list["items"][2]["data"]["a"], "b");
    }
}
