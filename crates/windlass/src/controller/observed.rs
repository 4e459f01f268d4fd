//! [`Observed`]: what a reconcile has seen.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::Arc,
};

use serde_json::Value;

use crate::{Key, Kind, key::Named, kind::KindScope};

/// The objects a reconcile has seen so far: what the controller
/// [`reads`](crate::Controller::reads), and what was applied, as it is in the cluster.
///
/// Given to the [`status`](crate::Controller::status) function and to dependents that want it.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Pod}};
/// use windlass::Observed;
///
/// fn ready(observed: &Observed) -> i32 {
///     let deployment = observed.owned::<Deployment>().next();
///     deployment.and_then(|one| one.status.as_ref()?.ready_replicas).unwrap_or(0)
/// }
///
/// fn pods(observed: &Observed) -> usize {
///     observed.read::<Pod>().count()
/// }
///
/// fn config<'a>(observed: &'a Observed, name: &str) -> Option<&'a ConfigMap> {
///     observed.get(name)
/// }
/// ```
#[derive(Default)]
pub struct Observed {
    /// The namespace that plain names are looked up in.
    namespace: Option<Box<str>>,
    objects: BTreeMap<(TypeId, Source, Key), Arc<dyn Any + Send + Sync>>,
    templates: Vec<Value>,
}

/// How an object came to be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Owned,
    Read,
}

impl Observed {
    pub(crate) fn new(namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(Into::into),
            ..Self::default()
        }
    }

    /// The objects of a kind that belong to the reconciled object, in the order of namespace and
    /// name.
    pub fn owned<T: Kind>(&self) -> impl Iterator<Item = &T> {
        self.from(Source::Owned)
    }

    /// The objects of a kind that the controller reads, in the order of namespace and name.
    pub fn read<T: Kind>(&self) -> impl Iterator<Item = &T> {
        self.from(Source::Read)
    }

    /// The object of that name, owned or read: tells several of one kind apart.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a name is given as to every handle"
    )]
    pub fn get<T: Kind>(&self, name: impl Named) -> Option<&T> {
        let key = name.key_in(self.namespace.as_deref());
        let key = if <T::Scope as KindScope>::NAMESPACED {
            key
        } else {
            Key::cluster(key.name())
        };
        [Source::Owned, Source::Read]
            .into_iter()
            .find_map(|source| {
                self.objects
                    .get(&(TypeId::of::<T>(), source, key.clone()))?
                    .downcast_ref()
            })
    }

    /// The objects of a [`Template`](crate::controller::Template), as they are in the cluster, in the order of
    /// its documents.
    pub fn of_templates(&self) -> impl Iterator<Item = &Value> {
        self.templates.iter()
    }

    fn from<T: Kind>(&self, source: Source) -> impl Iterator<Item = &T> {
        let first = (TypeId::of::<T>(), source, Key::first());
        self.objects
            .range(first..)
            .take_while(move |((kind, from, _), _)| *kind == TypeId::of::<T>() && *from == source)
            .filter_map(|(_, object)| object.downcast_ref())
    }

    pub(crate) fn add_template(&mut self, object: Value) {
        self.templates.push(object);
    }

    pub(crate) fn add<T: Kind>(&mut self, source: Source, object: Arc<T>) {
        let key = (TypeId::of::<T>(), source, Key::of(object.as_ref()));
        self.objects.insert(key, object);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
    use kube::ResourceExt;

    use super::*;

    fn named<T: Kind + Default>(namespace: Option<&str>, name: &str) -> Arc<T> {
        let mut object = T::default();
        object.meta_mut().name = Some(name.to_owned());
        object.meta_mut().namespace = namespace.map(str::to_owned);
        Arc::new(object)
    }

    #[test]
    fn owned_and_read_objects_of_one_kind_are_told_apart_and_sorted() {
        let mut observed = Observed::new(Some("n"));
        for name in ["b", "a"] {
            observed.add(Source::Owned, named::<ConfigMap>(Some("n"), name));
            observed.add(
                Source::Read,
                named::<ConfigMap>(Some("n"), &format!("read-{name}")),
            );
            observed.add(
                Source::Owned,
                named::<Secret>(Some("n"), &format!("secret-{name}")),
            );
        }
        let names = |objects: Vec<&ConfigMap>| -> Vec<String> {
            objects.into_iter().map(ResourceExt::name_any).collect()
        };
        assert_eq!(names(observed.owned().collect()), ["a", "b"]);
        assert_eq!(names(observed.read().collect()), ["read-a", "read-b"]);
        assert_eq!(observed.read::<Secret>().count(), 0);
    }

    #[test]
    fn an_object_is_found_by_name_in_the_namespace_of_the_reconciled_object() {
        let mut observed = Observed::new(Some("n"));
        observed.add(Source::Read, named::<ConfigMap>(Some("n"), "a"));
        observed.add(Source::Read, named::<ConfigMap>(Some("other"), "b"));
        observed.add(Source::Read, named::<Namespace>(None, "a"));
        assert!(observed.get::<ConfigMap>("a").is_some());
        assert!(observed.get::<ConfigMap>("b").is_none());
        assert!(observed.get::<ConfigMap>(("other", "b")).is_some());
        assert!(observed.get::<Namespace>("a").is_some());
    }
}
