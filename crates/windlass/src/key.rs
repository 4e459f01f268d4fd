//! [`Key`]: which object, within one kind.
//!
//! A key is what queues hold and what caches are asked for. Where a handle takes a name it takes
//! anything [`Named`]: a plain string means "in the namespace of the object being reconciled".

use std::fmt;

use kube::Resource;

use crate::kind::KindInfo;

/// Namespace and name of an object of some kind; cluster-scoped objects have no namespace.
///
/// ```
/// use windlass::Key;
///
/// let key = Key::namespaced("default", "cache");
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "cache"));
/// assert_eq!(Key::cluster("node-1").to_string(), "node-1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    namespace: Option<Box<str>>,
    name: Box<str>,
}

impl Key {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: impl Into<Box<str>>, name: impl Into<Box<str>>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: impl Into<Box<str>>) -> Self {
        Self {
            namespace: None,
            name: name.into(),
        }
    }

    /// The key of an object that has been given its name.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::from_parts(
            meta.namespace.as_deref(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }

    /// The key before all others.
    pub(crate) fn first() -> Self {
        Self::cluster("")
    }

    pub(crate) fn from_parts(namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.filter(|ns| !ns.is_empty()).map(Into::into),
            name: name.into(),
        }
    }

    /// The namespace, if the object lives in one.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Something that names an object: a name alone (taken in the namespace of the object being
/// reconciled), a `(namespace, name)` pair, or a whole [`Key`].
pub trait Named: Send {
    /// The key this names, for a reader that lives in `namespace`.
    fn key_in(&self, namespace: Option<&str>) -> Key;

    /// As [`key_in`](Self::key_in), of an object of this kind.
    fn key_for(&self, kind: &KindInfo, namespace: Option<&str>) -> Key {
        let key = self.key_in(namespace);
        if kind.namespaced {
            key
        } else {
            Key::cluster(key.name())
        }
    }
}

impl Named for &str {
    fn key_in(&self, namespace: Option<&str>) -> Key {
        Key::from_parts(namespace, self)
    }
}

impl Named for String {
    fn key_in(&self, namespace: Option<&str>) -> Key {
        Key::from_parts(namespace, self)
    }
}

impl Named for &String {
    fn key_in(&self, namespace: Option<&str>) -> Key {
        Key::from_parts(namespace, self)
    }
}

impl Named for (&str, &str) {
    fn key_in(&self, _namespace: Option<&str>) -> Key {
        Key::namespaced(self.0, self.1)
    }
}

impl Named for Key {
    fn key_in(&self, _namespace: Option<&str>) -> Key {
        self.clone()
    }
}

impl Named for &Key {
    fn key_in(&self, _namespace: Option<&str>) -> Key {
        (*self).clone()
    }
}

/// What [`referenced_by`](crate::Watched::referenced_by) closures return: no name, one, or many.
pub trait Names {
    /// The keys named, for a referrer that lives in `namespace`.
    fn keys_in(self, namespace: Option<&str>) -> Vec<Key>;
}

impl<N: Named> Names for N {
    fn keys_in(self, namespace: Option<&str>) -> Vec<Key> {
        vec![self.key_in(namespace)]
    }
}

impl<N: Named> Names for Option<N> {
    fn keys_in(self, namespace: Option<&str>) -> Vec<Key> {
        self.iter().map(|name| name.key_in(namespace)).collect()
    }
}

impl<N: Named> Names for Vec<N> {
    fn keys_in(self, namespace: Option<&str>) -> Vec<Key> {
        self.iter().map(|name| name.key_in(namespace)).collect()
    }
}
