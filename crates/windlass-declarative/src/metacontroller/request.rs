//! What a hook is sent.

use serde_json::{Map, Value, json};
use windlass::kind::{Key, KindInfo};

use super::kinds::HookVersion;
use crate::Objects;

/// Objects by `Kind.apiVersion` and name.
///
/// In v1 a name is relative to the parent: with its namespace only if the parent has none. A
/// namespaced parent sees no objects of other namespaces, nor cluster-scoped ones. In v2 it always
/// has its namespace.
pub(super) fn map_of(objects: &Objects, version: HookVersion, parent: &Value) -> Value {
    let own = parent
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let mut kinds = Map::new();
    for (kind, objects) in objects.kinds() {
        let mut named = Map::new();
        for (key, object) in objects {
            let name = match (version, own) {
                (HookVersion::V1, Some(_)) if key.namespace() != own => continue,
                (HookVersion::V1, Some(_)) => key.name().to_owned(),
                (HookVersion::V1, None) | (HookVersion::V2, _) => key.to_string(),
            };
            named.insert(name, with_type(kind, object));
        }
        kinds.insert(
            format!("{}.{}", kind.kind, kind.api_version()),
            named.into(),
        );
    }
    kinds.into()
}

/// A list leaves the type out of its items; a hook wants it.
fn with_type(kind: &KindInfo, object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.as_str().into();
    object
}

/// What an answer is about, for what is kept between two calls.
pub(super) fn about(kind: &KindInfo, key: &Key) -> String {
    format!("{kind} {key}")
}

/// The request of a customize hook.
pub(super) fn customize(controller: &Value, parent: &Value) -> Value {
    json!({ "controller": controller, "parent": parent })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn kind(group: &str, kind: &str, namespaced: bool) -> KindInfo {
        KindInfo {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced,
        }
    }

    fn objects() -> Objects {
        let (map, deployment) = (
            kind("", "ConfigMap", true),
            kind("apps", "Deployment", true),
        );
        let mut objects = Objects::new();
        objects.declare(&deployment);
        for (namespace, name) in [("one", "a"), ("two", "b")] {
            let object = json!({"metadata": {"namespace": namespace, "name": name}});
            objects.insert(&map, Key::namespaced(namespace, name), Arc::new(object));
        }
        let node = json!({"metadata": {"name": "n"}});
        objects.insert(&kind("", "Node", false), Key::cluster("n"), Arc::new(node));
        objects
    }

    fn names(version: HookVersion, parent: &Value) -> Value {
        let mut map = map_of(&objects(), version, parent);
        for kind in map.as_object_mut().unwrap().values_mut() {
            *kind = kind.as_object().unwrap().keys().cloned().collect();
        }
        map
    }

    #[test]
    fn names_of_v1_are_relative_to_the_parent_and_every_kind_has_an_entry() {
        let namespaced = json!({"metadata": {"namespace": "one", "name": "p"}});
        assert_eq!(
            names(HookVersion::V1, &namespaced),
            json!({"ConfigMap.v1": ["a"], "Deployment.apps/v1": [], "Node.v1": []})
        );
        let cluster = json!({"metadata": {"name": "p"}});
        assert_eq!(
            names(HookVersion::V1, &cluster),
            json!({"ConfigMap.v1": ["one/a", "two/b"], "Deployment.apps/v1": [], "Node.v1": ["n"]})
        );
    }

    #[test]
    fn names_of_v2_have_their_namespace() {
        let namespaced = json!({"metadata": {"namespace": "one", "name": "p"}});
        assert_eq!(
            names(HookVersion::V2, &namespaced),
            json!({"ConfigMap.v1": ["one/a", "two/b"], "Deployment.apps/v1": [], "Node.v1": ["n"]})
        );
    }
}
