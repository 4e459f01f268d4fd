//! The rules of `metadata`, which are the same for every kind.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::go;
use crate::names;
use crate::object::{finalizers, meta};
use crate::resource::Resource;
use crate::status::{Cause, field};

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
/// All annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// What is wrong with the metadata of a new object.
pub(crate) fn create_causes(object: &Value, resource: &Resource) -> Vec<Cause> {
    let check = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces" | "services") | ("apps", "statefulsets") if !resource.is_custom() => {
            names::label_errors
        }
        ("networking.k8s.io", "ipaddresses") if !resource.is_custom() => {
            crate::validation::address_name_errors
        }
        ("rbac.authorization.k8s.io", _) | (_, "events" | "poddisruptionbudgets")
            if !resource.is_custom() =>
        {
            names::segment_errors
        }
        _ => names::subdomain_errors,
    };
    let (name, base) = (meta(object, "name"), meta(object, "generateName"));
    let mut causes = Vec::new();
    if !base.is_empty() {
        // A base may end in a dash, as something follows.
        let masked = base.strip_suffix('-').map(|start| format!("{start}a"));
        let wrong = check(masked.as_deref().unwrap_or(base));
        causes.extend(invalid("metadata.generateName", base, wrong));
    }
    if name.is_empty() {
        causes.push(field::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        causes.extend(invalid("metadata.name", name, check(name)));
    }
    if resource.namespaced && meta(object, "namespace").is_empty() {
        causes.push(field::required("metadata.namespace", ""));
    }
    causes.extend(common_causes(object));
    if Checks::of(resource).created == Own::WithFinalizers {
        causes.extend(finalizer_causes(object));
    }
    causes
}

/// How the rules of a kind look at the metadata themselves, beside those of all kinds. What is
/// wrong with it is told as often as it is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Not,
    Plain,
    /// Finalizers must have a domain or be Kubernetes' own.
    WithFinalizers,
}

/// When the rules of a kind look at the metadata.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// In a new object; what is not looked at here is after all else is found right.
    pub(crate) created: Own,
    /// In a change.
    pub(crate) changed: Own,
    /// Once more in the changed object by itself.
    pub(crate) whole: Own,
    /// In a change of the status.
    pub(crate) status: Own,
    /// Whether the changed object is looked at by itself before the change is.
    pub(crate) whole_first: bool,
}

/// Kinds whose changes are looked at after what they make.
const WHOLE_FIRST: &[(&str, &str)] = &[
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("batch", "jobs"),
    ("networking.k8s.io", "ipaddresses"),
    ("node.k8s.io", "runtimeclasses"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("storage.k8s.io", "csistoragecapacities"),
    ("storage.k8s.io", "storageclasses"),
];

impl Checks {
    pub(crate) fn of(resource: &Resource) -> Self {
        use Own::{Not, Plain, WithFinalizers};
        let checks = |created, changed, whole, status| Self {
            created,
            changed,
            whole,
            status,
            whole_first: WHOLE_FIRST.contains(&(resource.group.as_str(), resource.plural.as_str())),
        };
        if resource.is_custom() {
            return checks(Plain, Plain, Not, Plain);
        }
        match (resource.group.as_str(), resource.plural.as_str()) {
            (_, "events" | "poddisruptionbudgets") => checks(Not, Not, Not, Not),
            ("coordination.k8s.io", "leases") => checks(Plain, Plain, Not, Not),
            ("node.k8s.io", "runtimeclasses") => checks(Plain, Plain, Plain, Not),
            ("admissionregistration.k8s.io", _) => checks(Plain, Not, Plain, Not),
            ("discovery.k8s.io", "endpointslices")
            | ("storage.k8s.io", "csinodes" | "volumeattachments") => {
                checks(WithFinalizers, Not, WithFinalizers, Not)
            }
            // The whole is looked at twice instead.
            ("", "persistentvolumes") => {
                checks(WithFinalizers, Not, WithFinalizers, WithFinalizers)
            }
            ("", "limitranges") => checks(WithFinalizers, Not, WithFinalizers, Not),
            ("batch", "cronjobs") => checks(WithFinalizers, WithFinalizers, Not, Not),
            ("", "podtemplates" | "replicationcontrollers" | "services")
            | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
            | ("autoscaling" | "scheduling.k8s.io", _)
            | ("networking.k8s.io", "networkpolicies")
            | ("storage.k8s.io", "csidrivers") => {
                checks(WithFinalizers, WithFinalizers, Not, WithFinalizers)
            }
            _ => checks(
                WithFinalizers,
                WithFinalizers,
                WithFinalizers,
                WithFinalizers,
            ),
        }
    }
}

/// What the rules of a kind find wrong with the metadata of a change.
pub(crate) fn own_update_causes(new: &Value, old: &Value, own: Own) -> Vec<Cause> {
    if own == Own::Not {
        return Vec::new();
    }
    let mut causes = update_causes(new, old);
    if own == Own::WithFinalizers {
        causes.extend(finalizer_causes(new));
    }
    causes
}

/// What they find wrong with the metadata of the changed object by itself.
pub(crate) fn own_causes(object: &Value, own: Own) -> Vec<Cause> {
    if own == Own::Not {
        return Vec::new();
    }
    let mut causes = common_causes(object);
    if own == Own::WithFinalizers {
        causes.extend(finalizer_causes(object));
    }
    causes
}

/// What holds for every object, old or new.
pub(crate) fn common_causes(object: &Value) -> Vec<Cause> {
    let mut causes = described_causes(object);
    for finalizer in finalizers(object) {
        let wrong = names::qualified_errors(finalizer);
        causes.extend(invalid("metadata.finalizers", finalizer, wrong));
    }
    causes
}

/// What holds for labels, annotations and owners.
fn described_causes(object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    let none = Map::new();
    let map = |field: &str| metadata[field].as_object().unwrap_or(&none);
    for (key, value) in map("labels") {
        let value = value.as_str().unwrap_or_default();
        causes.extend(invalid(
            "metadata.labels",
            key,
            names::qualified_errors(key),
        ));
        let wrong = names::label_value_errors(value);
        causes.extend(invalid("metadata.labels", value, wrong));
    }
    let mut size = 0;
    for (key, value) in map("annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        let wrong = names::qualified_errors(&key.to_lowercase());
        causes.extend(invalid("metadata.annotations", key, wrong));
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(field::too_long(
            "metadata.annotations",
            ANNOTATIONS_LIMIT as u64,
        ));
    }
    owner_causes(object, &mut causes);
    causes
}

/// What an update of metadata may not do.
pub(crate) fn update_causes(new: &Value, old: &Value) -> Vec<Cause> {
    let (before, after) = (&old["metadata"], &new["metadata"]);
    let mut causes = Vec::new();
    if old["metadata"]["deletionTimestamp"].is_string() {
        causes.extend(late_finalizers(new, old));
    }
    for part in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if after.get(part) != before.get(part) {
            causes.push(field::invalid(
                format!("metadata.{part}"),
                &after[part],
                "field is immutable",
            ));
        }
    }
    causes.extend(described_causes(new));
    causes
}

fn invalid(
    path: &'static str,
    value: &str,
    wrong: Vec<String>,
) -> impl Iterator<Item = Cause> + use<> {
    let value = Value::from(value);
    wrong
        .into_iter()
        .map(move |why| field::invalid(path, &value, &why))
}

/// Built-in kinds want a domain in the name of a finalizer that is not Kubernetes' own.
fn finalizer_causes(object: &Value) -> impl Iterator<Item = Cause> + '_ {
    let named = finalizers(object).into_iter().enumerate();
    named
        .filter(|(_, name)| !name.contains('/') && !STANDARD_FINALIZERS.contains(name))
        .map(|(index, name)| {
            field::invalid(
                format!("metadata.finalizers[{index}]"),
                &name.into(),
                "name is neither a standard finalizer name nor is it fully qualified",
            )
        })
}

/// Nothing may be added to the finalizers of an object that is going away.
fn late_finalizers(new: &Value, old: &Value) -> Option<Cause> {
    let before: BTreeSet<&str> = finalizers(old).into_iter().collect();
    let mut added: Vec<String> = finalizers(new)
        .into_iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    added.sort();
    added.dedup();
    (!added.is_empty()).then(|| {
        field::forbidden(
            "metadata.finalizers",
            &format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            ),
        )
    })
}

fn owner_causes(object: &Value, causes: &mut Vec<Cause>) {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut controller: Option<String> = None;
    for owner in owners.into_iter().flatten() {
        for (part, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[part].as_str().is_none_or(str::is_empty) {
                let path = format!("metadata.ownerReferences.{part}");
                causes.push(field::invalid(path, &"".into(), why));
            }
        }
        if owner["apiVersion"] == "v1" && owner["kind"] == "Event" {
            causes.push(field::invalid_shown(
                "metadata.ownerReferences",
                &go::owner_json(owner),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner["controller"] == true {
            let text = |part: &str| owner[part].as_str().unwrap_or_default();
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => causes.push(field::invalid_shown(
                    "metadata.ownerReferences",
                    &go::owners_json(owners.map_or(&[], Vec::as_slice)),
                    &format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_terminating_object_gets_no_new_finalizers() {
        let old = json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["a/b"]}});
        let new = json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["a/b", "c/d"]}});
        let causes = update_causes(&new, &old);
        assert_eq!(causes.len(), 1);
        assert!(
            causes[0].message.ends_with("[]string{\"c/d\"}"),
            "{causes:?}"
        );
        assert!(update_causes(&old, &new).is_empty());
    }

    #[test]
    fn one_controller_at_most() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "K", "name": name, "uid": "u", "controller": true});
        let object = json!({"metadata": {"ownerReferences": [owner("a"), owner("b")]}});
        let causes = common_causes(&object);
        assert_eq!(causes.len(), 1);
        assert!(causes[0].message.contains("for K/a and K/b"), "{causes:?}");
    }
}
