//! [`Input`]: what a renderer is given.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use windlass::kind::{Key, KindInfo};

/// What a renderer computes from.
#[derive(Clone, Debug)]
pub struct Input {
    /// The kind of the parent.
    pub kind: KindInfo,
    /// The parent.
    pub parent: Arc<Value>,
    /// What belongs to the parent now, by kind. Every kind that was declared is there, also without
    /// objects.
    pub children: Objects,
    /// What the renderer asked to see beside.
    pub related: Objects,
    /// Whether the parent is being deleted.
    pub finalizing: bool,
}

/// Objects by kind and key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects(BTreeMap<KindInfo, BTreeMap<Key, Arc<Value>>>);

impl Objects {
    /// No kinds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind, so far without objects.
    pub fn declare(&mut self, kind: &KindInfo) {
        self.0.entry(kind.clone()).or_default();
    }

    /// Adds an object.
    pub fn insert(&mut self, kind: &KindInfo, key: Key, object: Arc<Value>) {
        self.0.entry(kind.clone()).or_default().insert(key, object);
    }

    /// The object of that kind and key.
    pub fn get(&self, kind: &KindInfo, key: &Key) -> Option<&Arc<Value>> {
        self.0.get(kind)?.get(key)
    }

    /// The objects of a kind, in the order of their keys.
    pub fn of(&self, kind: &KindInfo) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.0.get(kind).into_iter().flatten()
    }

    /// The kinds, with their objects.
    pub fn kinds(&self) -> impl Iterator<Item = (&KindInfo, &BTreeMap<Key, Arc<Value>>)> {
        self.0.iter()
    }
}
