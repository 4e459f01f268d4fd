//! Finalizers: what keeps an object from going before its cleanup is done.

use serde_json::{Value, json};

use crate::kind::KindInfo;

/// The finalizer of an operator on a kind: in the kind's own group, named after the operator.
pub(crate) fn name(kind: &KindInfo, operator: &str) -> String {
    let domain = if kind.group.is_empty() {
        "core.windlass.dev"
    } else {
        &kind.group
    };
    format!("{domain}/{operator}")
}

/// The patch that adds the finalizer. The list is replaced as a whole, so the patch holds only for
/// the version that was read.
pub(crate) fn add(object: &Value, finalizer: &str) -> Value {
    patch(object, &list(object).chain([finalizer]).collect::<Vec<_>>())
}

/// The patch that removes the finalizer.
pub(crate) fn remove(object: &Value, finalizer: &str) -> Value {
    patch(
        object,
        &list(object)
            .filter(|have| *have != finalizer)
            .collect::<Vec<_>>(),
    )
}

fn patch(object: &Value, finalizers: &[&str]) -> Value {
    json!({"metadata": {
        "finalizers": finalizers,
        "resourceVersion": object["metadata"]["resourceVersion"],
    }})
}

fn list(object: &Value) -> impl Iterator<Item = &str> {
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_finalizers_stay() {
        let object = json!({"metadata": {"resourceVersion": "7", "finalizers": ["a/b"]}});
        let added = add(&object, "c/d");
        assert_eq!(added["metadata"]["finalizers"], json!(["a/b", "c/d"]));
        assert_eq!(added["metadata"]["resourceVersion"], "7");
        assert_eq!(
            remove(&added, "c/d")["metadata"]["finalizers"],
            json!(["a/b"])
        );
    }
}
