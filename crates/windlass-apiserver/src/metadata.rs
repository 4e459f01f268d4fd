//! The rules of `metadata`, which are the same for every kind.

use serde_json::Value;

use crate::names;
use crate::object::meta;
use crate::object_meta::{common_causes, finalizer_causes, invalid, update_causes};
use crate::resource::Resource;
use crate::status::{Cause, field};

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
