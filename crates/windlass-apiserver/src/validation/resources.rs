//! Names and amounts of resources: what containers and pods ask for, what limits and quotas allow.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::{At, Causes};
use crate::names;
use crate::quantity::Quantity;
use crate::status::field;

const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
const OF_CONTAINERS: &[&str] = &["cpu", "memory", "ephemeral-storage"];
/// What comes in whole numbers only.
const WHOLE: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const HUGE_PAGES: &str = "hugepages-";

/// Whose resources they are: not everything can be asked for everywhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Container,
    Pod,
    Quota,
    /// Of anything that is limited.
    Anything,
}

pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(Quantity::parse)
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether more may be promised of it than there is.
fn is_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_errors(&format!("requests.{name}")).is_empty()
}

pub(crate) fn is_standard_quota(name: &str) -> bool {
    (STANDARD.contains(&name) && name != "storage")
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

/// Whether a resource of that name can be spoken of here. `at` is the entry of a list.
pub(crate) fn name(at: &At<'_, '_>, name: &str, of: Of, causes: &mut Causes) {
    let known = causes.len();
    let wrong = |why: &str| at.invalid_value(name, why);
    for why in names::qualified_errors(name) {
        causes.push(wrong(&why));
    }
    let plain = !name.contains('/');
    let standard =
        STANDARD.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-");
    if causes.len() == known && plain && !standard {
        causes.push(wrong("must be a standard resource type or fully qualified"));
    }
    match of {
        Of::Container if plain => {
            if !OF_CONTAINERS.contains(&name) && !is_huge_page(name) {
                causes.push(wrong("must be a standard resource for containers"));
            }
        }
        Of::Container => {
            if !is_native(name) && !is_extended(name) {
                causes.push(wrong("doesn't follow extended resource name standard"));
            }
        }
        Of::Pod if causes.len() == known => {
            if !matches!(name, "cpu" | "memory") && !is_huge_page(name) {
                let allowed = ["cpu", HUGE_PAGES, "memory"].map(|one| format!("\"{one}\""));
                let path = at.to_string();
                causes.push(field::not_supported(path, &name.into(), &allowed));
            }
        }
        Of::Quota if plain && !is_standard_quota(name) => {
            causes.push(wrong("must be a standard resource for quota"));
        }
        Of::Pod | Of::Quota | Of::Anything => {}
    }
}

/// An amount is not below zero, and whole where it counts things.
pub(crate) fn amount(at: &At<'_, '_>, name: &str, causes: &mut Causes) {
    let Some(amount) = quantity(at.value) else {
        return;
    };
    if amount.is_negative() {
        causes.push(at.invalid("must be greater than or equal to 0"));
    }
    if (WHOLE.contains(&name) || is_extended(name)) && !amount.is_whole() {
        causes.push(at.invalid("must be an integer"));
    }
}

/// What a container or a pod asks for and is held to.
pub(crate) fn requirements(at: &At<'_, '_>, of: Of, claims: &BTreeSet<&str>, causes: &mut Causes) {
    let (mut computes, mut huge) = (false, false);
    for (resource, limit) in at.entries("limits") {
        name(&limit, resource, of, causes);
        amount(&limit, resource, causes);
        huge_pages(&limit, resource, causes);
        huge |= is_huge_page(resource);
        computes |= matches!(resource, "cpu" | "memory");
    }
    for (resource, request) in at.entries("requests") {
        name(&request, resource, of, causes);
        amount(&request, resource, causes);
        let limit = quantity(&at.value["limits"][resource]);
        match (quantity(request.value), limit) {
            (Some(asked), Some(most)) => {
                let wrong = if asked != most && !is_overcommitted(resource) {
                    Some("equal to")
                } else if asked > most {
                    Some("less than or equal to")
                } else {
                    None
                };
                if let Some(wrong) = wrong {
                    let why = format!("must be {wrong} {resource} limit of {most}");
                    let requests = at.child("requests");
                    causes.push(requests.invalid_value(request.value.clone(), &why));
                }
            }
            (Some(_), None) if !is_overcommitted(resource) => {
                let why = "Limit must be set for non overcommitable resources";
                causes.push(at.child("limits").required(why));
            }
            _ => {}
        }
        huge_pages(&request, resource, causes);
        huge |= is_huge_page(resource);
        computes |= matches!(resource, "cpu" | "memory");
    }
    if huge && !computes {
        causes.push(at.forbidden("HugePages require cpu or memory"));
    }
    claim_names(at, claims, causes);
}

fn huge_pages(at: &At<'_, '_>, resource: &str, causes: &mut Causes) {
    let Some(size) = resource.strip_prefix(HUGE_PAGES) else {
        return;
    };
    let fits = match (quantity(at.value), Quantity::parse(size)) {
        (Some(amount), Some(size)) => amount.is_multiple_of(&size),
        _ => false,
    };
    if !fits {
        let amount = at.value.as_str().unwrap_or_default();
        let why = format!("{amount} is not positive integer multiple of {resource}");
        causes.push(at.invalid(&why));
    }
}

/// The claims a container uses must be the pod's.
fn claim_names(at: &At<'_, '_>, claims: &BTreeSet<&str>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for claim in at.items("claims") {
        let (name, request) = (claim.text("name"), claim.text("request"));
        if name.is_empty() {
            causes.push(claim.required(""));
            continue;
        }
        if !request.is_empty() {
            let at = claim.child("request");
            at.complain(names::label_errors(request), causes);
        }
        let whole_and_part = seen.iter().any(|(other, part): &(&str, &str)| {
            *other == name && (part.is_empty() || request.is_empty())
        });
        if whole_and_part || !seen.insert((name, request)) {
            causes.push(claim.duplicate_value(name));
        }
        if !claims.contains(name) {
            let known: Vec<&str> = claims.iter().copied().collect();
            let known = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.join(", "))
            };
            let mut cause = field::not_found(claim.to_string(), &name.into());
            cause.message = format!(
                "{}: must be one of the names in pod.spec.resourceClaims{known}",
                cause.message
            );
            causes.push(cause);
        }
    }
}
