//! Verbs, and what may be done with them: [`Access`] for one kind, [`Grant`] for raw requests.

use std::{collections::BTreeMap, collections::BTreeSet, fmt};

use windlass_manifests::Rule;

use crate::{Kind, KindInfo};

/// What a request does, as RBAC rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow changes.
    Watch,
    /// Create an object (or post to a subresource such as `binding`).
    Create,
    /// Replace an object.
    Update,
    /// Change parts of an object; server-side apply is a patch too.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete many objects by one request.
    DeleteCollection,
}

impl Verb {
    /// The verb's name in RBAC rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// What keeping a cache of a kind needs.
    pub const READ: [Self; 2] = [Self::List, Self::Watch];
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a [`Writes`](crate::Writes) handle may do with the objects of its kind.
///
/// ```
/// # use windlass::{Access, Verb};
/// let scheduler = Access::none().on("binding", [Verb::Create]).on("status", [Verb::Patch]);
/// let evictor = Access::to([Verb::Delete]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Verbs per subresource; the object itself is the empty name.
    verbs: BTreeMap<String, BTreeSet<Verb>>,
}

impl Access {
    /// Nothing on the object itself; subresources may follow.
    pub fn none() -> Self {
        Self::default()
    }

    /// These verbs on the object itself.
    pub fn to(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self::none().on("", verbs)
    }

    /// Also these verbs on a subresource.
    #[must_use]
    pub fn on(
        mut self,
        subresource: impl Into<String>,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        self.verbs
            .entry(subresource.into())
            .or_default()
            .extend(verbs);
        self
    }

    pub(crate) fn allows(&self, subresource: &str, verb: Verb) -> bool {
        self.verbs
            .get(subresource)
            .is_some_and(|verbs| verbs.contains(&verb))
    }

    pub(crate) fn grants(&self, kind: &KindInfo) -> Vec<Grant> {
        self.verbs
            .iter()
            .map(|(subresource, verbs)| {
                let resource = if subresource.is_empty() {
                    kind.plural.clone()
                } else {
                    format!("{}/{subresource}", kind.plural)
                };
                Grant::new(kind.group.clone(), resource, verbs.iter().copied())
            })
            .collect()
    }
}

/// Verbs on one resource, however it is reached. Raw client access is only given together with
/// the grants that say what it is for; `explain` and the generated role show them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) verbs: BTreeSet<String>,
}

impl Grant {
    /// Verbs on a resource by group and plural name (`pods`, `pods/binding`); `*` is any.
    pub fn new(
        group: impl Into<String>,
        resource: impl Into<String>,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
            verbs: verbs
                .into_iter()
                .map(|verb| verb.as_str().to_owned())
                .collect(),
        }
    }

    /// Verbs on a kind.
    pub fn of<T: Kind>(verbs: impl IntoIterator<Item = Verb>) -> Self {
        let kind = KindInfo::of::<T>();
        Self::new(kind.group, kind.plural, verbs)
    }

    /// Verbs on every resource of every group, as a garbage collector needs them.
    pub fn everything(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self::new("*", "*", verbs)
    }

    pub(crate) fn rule(self, why: &str) -> Rule {
        Rule {
            names: BTreeSet::new(),
            group: self.group,
            resource: self.resource,
            verbs: self.verbs,
            why: why.to_owned(),
        }
    }
}
