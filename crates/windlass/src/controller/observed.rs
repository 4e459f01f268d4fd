//! [`Observed`]: what a reconcile of the short form saw.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
};

use serde_json::Value;

use crate::Kind;

/// The objects a status is computed from: the dependents as they are in the cluster, and what the
/// controller [`reads`](crate::Controller::reads).
#[derive(Default)]
pub struct Observed {
    objects: BTreeMap<TypeId, Vec<Box<dyn Any + Send + Sync>>>,
    values: Vec<Value>,
}

impl Observed {
    /// Every observed object of a kind, in the order of namespace and name.
    pub fn all<T: Kind>(&self) -> impl Iterator<Item = &T> {
        self.objects
            .get(&TypeId::of::<T>())
            .into_iter()
            .flatten()
            .filter_map(|object| object.downcast_ref())
    }

    /// The first observed object of a kind: the one to ask for where there is one.
    pub fn first<T: Kind>(&self) -> Option<&T> {
        self.all().next()
    }

    /// The objects of a [`Template`](crate::Template), as they are in the cluster, in the order of
    /// its documents.
    pub fn of_templates(&self) -> impl Iterator<Item = &Value> {
        self.values.iter()
    }

    pub(crate) fn add_value(&mut self, object: Value) {
        self.values.push(object);
    }

    pub(crate) fn add<T: Kind>(&mut self, objects: impl IntoIterator<Item = T>) {
        let slot = self.objects.entry(TypeId::of::<T>()).or_default();
        slot.extend(
            objects
                .into_iter()
                .map(|object| Box::new(object) as Box<dyn Any + Send + Sync>),
        );
    }
}
