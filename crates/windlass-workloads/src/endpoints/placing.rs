//! Which endpoint goes into which slice.
//!
//! Every write of a slice is sent to every proxy, so as few as possible are touched: endpoints stay
//! where they are; new ones go first into slices that change anyway, then into the one unchanged
//! slice that they fill best, and only then into new ones. Slices that become empty go, or serve
//! for what would be created.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::slice::labels_differ;

/// How many endpoints a slice has at most.
pub(super) const FULL: usize = 100;

/// What is to be done to the slices.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<EndpointSlice>,
    pub(super) keep: Vec<EndpointSlice>,
}

/// What makes an endpoint the same one, whatever else changes about it: whose it is, and where.
type Identity = (String, String, Vec<String>, String);

/// The endpoints that shall be, in the order of their pods.
pub(super) type Wanted = BTreeMap<Identity, Endpoint>;

pub(super) fn identity(endpoint: &Endpoint) -> Identity {
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    let pod = endpoint.target_ref.as_ref();
    let mut addresses = endpoint.addresses.clone();
    addresses.sort();
    (
        text(pod.and_then(|pod| pod.namespace.as_ref())),
        text(pod.and_then(|pod| pod.name.as_ref())),
        addresses,
        text(endpoint.hostname.as_ref()),
    )
}

/// Whether two endpoints of one identity are alike in everything that matters.
fn alike(one: &Endpoint, other: &Endpoint) -> bool {
    let pod = |endpoint: &Endpoint| {
        endpoint.target_ref.clone().map(|pod| ObjectReference {
            resource_version: None,
            ..pod
        })
    };
    one.node_name == other.node_name
        && one.zone == other.zone
        && one.conditions == other.conditions
        && pod(one) == pod(other)
}

/// Adds to the plan what becomes of the slices of one group of ports, so that they hold what is
/// wanted. `labels` are those that slices shall have; `empty` makes a new slice.
pub(super) fn place(
    plan: &mut Plan,
    existing: Vec<EndpointSlice>,
    mut wanted: Wanted,
    labels: &BTreeMap<String, String>,
    empty: impl Fn() -> EndpointSlice,
) {
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for mut slice in existing {
        let before = slice.endpoints.take().unwrap_or_default();
        let mut differs = false;
        let mut kept = Vec::with_capacity(before.len());
        for endpoint in &before {
            if let Some(found) = wanted.remove(&identity(endpoint)) {
                differs |= !alike(&found, endpoint);
                kept.push(found);
            }
        }
        let differs = differs || kept.len() != before.len();
        if differs && kept.is_empty() {
            slice.endpoints = Some(before);
            plan.delete.push(slice);
        } else if differs || labels_differ(&slice, labels) {
            slice.endpoints = Some(if differs { kept } else { before });
            slice.metadata.labels = Some(labels.clone());
            changed.push(slice);
        } else {
            slice.endpoints = Some(before);
            unchanged.push(slice);
        }
    }
    // The fullest first. The order among equals is that of their names.
    changed.sort_by_key(|slice| std::cmp::Reverse(len(slice)));
    for slice in &mut changed {
        fill(slice, &mut wanted);
    }
    while !wanted.is_empty() {
        let fits = best_fit(&unchanged, wanted.len());
        let mut slice = fits.map_or_else(&empty, |at| unchanged.remove(at));
        fill(&mut slice, &mut wanted);
        if fits.is_some() {
            changed.push(slice);
        } else {
            plan.create.push(slice);
        }
    }
    plan.update.append(&mut changed);
    plan.keep.append(&mut unchanged);
}

fn len(slice: &EndpointSlice) -> usize {
    slice.endpoints.as_ref().map_or(0, Vec::len)
}

fn fill(slice: &mut EndpointSlice, wanted: &mut Wanted) {
    let endpoints = slice.endpoints.get_or_insert_default();
    while endpoints.len() < FULL
        && let Some((_, endpoint)) = wanted.pop_first()
    {
        endpoints.push(endpoint);
    }
}

/// The slice that so many more fill best, if one has room for all of them.
fn best_fit(slices: &[EndpointSlice], count: usize) -> Option<usize> {
    let rooms = slices.iter().enumerate();
    let rooms = rooms.filter_map(|(at, slice)| {
        let left = FULL.checked_sub(count + len(slice))?;
        (left < FULL).then_some((left, at))
    });
    rooms.min().map(|(_, at)| at)
}

impl Plan {
    /// Whether nothing would be left.
    pub(super) fn leaves_nothing(&self) -> bool {
        self.create.is_empty() && self.update.is_empty() && self.keep.is_empty()
    }

    /// Lets slices that would be deleted serve for those that would be created.
    pub(super) fn reuse(&mut self, may: impl Fn(&EndpointSlice) -> bool) {
        let mut delete = Vec::new();
        for old in std::mem::take(&mut self.delete) {
            let serves = may(&old);
            let new = self
                .create
                .pop_if(|new| serves && new.address_type == old.address_type);
            let Some(mut new) = new else {
                delete.push(old);
                continue;
            };
            new.metadata.name = old.metadata.name;
            new.metadata.owner_references = old.metadata.owner_references;
            new.metadata.resource_version = old.metadata.resource_version;
            self.update.push(new);
        }
        self.delete = delete;
    }
}

#[cfg(test)]
mod tests;
