//! [`Occupancy`]: which pods are on which node, and what they take up there.
//!
//! It follows the changes of pods, so that placing one costs the same however many there are. A pod
//! that was just bound is **assumed** to be on its node until the cache shows it there: the next
//! choice has to count it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm};
use windlass::Key;

use super::neighbours;
use super::resources::{Resources, ports};
use crate::pod;

/// A pod on a node, as far as others have to reckon with it.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    uid: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Whom it does not want near it.
    pub(crate) unwanted: Vec<PodAffinityTerm>,
    asked: Resources,
    ports: Vec<ports::Port>,
}

impl Tenant {
    fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        Self {
            uid: pod.metadata.uid.clone(),
            namespace: pod.metadata.namespace.clone(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            unwanted: neighbours::unwanted(pod).to_vec(),
            asked: spec.map(Resources::of).unwrap_or_default(),
            ports: spec.map(ports::of).unwrap_or_default(),
        }
    }
}

/// The pods on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct House {
    tenants: BTreeMap<Key, Tenant>,
    /// Those who mind who is near them.
    minding: BTreeSet<Key>,
    used: Resources,
}

impl House {
    pub(crate) fn len(&self) -> usize {
        self.tenants.len()
    }

    /// What its pods ask for, all together.
    pub(crate) fn used(&self) -> &Resources {
        &self.used
    }

    pub(crate) fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.values()
    }

    /// Its pods that do not want every other near them.
    pub(crate) fn minding(&self) -> impl Iterator<Item = &Tenant> {
        self.minding.iter().filter_map(|key| self.tenants.get(key))
    }

    /// The ports of the machine that its pods have.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &ports::Port> {
        self.tenants().flat_map(|tenant| &tenant.ports)
    }

    fn insert(&mut self, key: Key, tenant: Tenant) {
        self.used.add(&tenant.asked);
        if !tenant.unwanted.is_empty() {
            self.minding.insert(key.clone());
        }
        self.tenants.insert(key, tenant);
    }

    fn remove(&mut self, key: &Key) {
        if let Some(tenant) = self.tenants.remove(key) {
            self.used.take(&tenant.asked);
            self.minding.remove(key);
        }
    }
}

/// The pods on all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Occupancy {
    houses: BTreeMap<String, House>,
    /// The node of each pod.
    homes: BTreeMap<Key, String>,
}

impl Occupancy {
    /// What the cache shows of a pod now.
    pub(crate) fn observe(&mut self, pod: &Pod) {
        match pod::node_name(pod) {
            Some(node) if !pod::has_ended(pod) => self.place(pod, node),
            // It shows a state from before the binding.
            None if !pod::has_ended(pod) && self.has(pod) => {}
            _ => self.forget(&Key::of(pod)),
        }
    }

    /// The pod is on the node, though the cache may not show it yet.
    pub(crate) fn place(&mut self, pod: &Pod, node: &str) {
        let key = Key::of(pod);
        self.forget(&key);
        let house = self.houses.entry(node.to_owned()).or_default();
        house.insert(key.clone(), Tenant::of(pod));
        self.homes.insert(key, node.to_owned());
    }

    /// The pod is on no node any more.
    pub(crate) fn forget(&mut self, key: &Key) {
        let Some(node) = self.homes.remove(key) else {
            return;
        };
        if let Some(house) = self.houses.get_mut(&node) {
            house.remove(key);
            if house.tenants.is_empty() {
                self.houses.remove(&node);
            }
        }
    }

    /// Whether this very pod, and no other of its name, is on a node.
    pub(crate) fn has(&self, pod: &Pod) -> bool {
        let key = Key::of(pod);
        let house = self.homes.get(&key).and_then(|node| self.houses.get(node));
        house
            .and_then(|house| house.tenants.get(&key))
            .is_some_and(|tenant| tenant.uid == pod.metadata.uid)
    }

    /// The pods on a node, if there are any.
    pub(crate) fn on(&self, node: &str) -> Option<&House> {
        self.houses.get(node)
    }

    /// All nodes with pods.
    pub(crate) fn houses(&self) -> impl Iterator<Item = (&str, &House)> {
        self.houses
            .iter()
            .map(|(node, house)| (node.as_str(), house))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::{bound, in_phase, pod};

    fn count(occupancy: &Occupancy, node: &str) -> usize {
        occupancy.on(node).map_or(0, House::len)
    }

    #[test]
    fn follows_pods_from_node_to_node_and_out() {
        let mut occupancy = Occupancy::default();
        occupancy.observe(&pod("a"));
        assert_eq!(occupancy.houses().count(), 0);
        occupancy.observe(&bound(pod("a"), "one"));
        occupancy.observe(&bound(pod("b"), "one"));
        assert_eq!(count(&occupancy, "one"), 2);
        occupancy.observe(&bound(pod("a"), "two"));
        assert_eq!((count(&occupancy, "one"), count(&occupancy, "two")), (1, 1));
        occupancy.observe(&in_phase(bound(pod("b"), "one"), "Succeeded"));
        occupancy.forget(&Key::of(&pod("a")));
        assert_eq!(occupancy.houses().count(), 0);
    }

    #[test]
    fn a_binding_counts_before_the_cache_shows_it() {
        let mut occupancy = Occupancy::default();
        occupancy.place(&pod("a"), "one");
        occupancy.observe(&pod("a"));
        assert!(occupancy.has(&pod("a")));
        let mut another = pod("a");
        another.metadata.uid = Some("another".to_owned());
        assert!(!occupancy.has(&another));
        occupancy.observe(&another);
        assert_eq!(
            count(&occupancy, "one"),
            0,
            "the one that was bound is gone"
        );
    }
}
