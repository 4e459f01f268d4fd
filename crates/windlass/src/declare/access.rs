//! [`Access`]: verbs on the objects of a kind.

use std::{collections::BTreeMap, collections::BTreeSet};

pub use windlass_apimachinery::Verb;
use windlass_manifests::Rule;

use crate::{Kind, kind::KindInfo};

/// Verbs on the objects of a kind and on their subresources: what a handle or a background task may
/// do. `explain` and the generated role show it.
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use windlass::handle::{Access, Verb};
/// // For a handle of a kind, the kind goes without saying:
/// let scheduler = Access::none().on("binding", [Verb::Create]).on("status", [Verb::Patch]);
/// let evictor = Access::to([Verb::Delete]);
/// // For the client itself it is named:
/// let raw = [Access::of::<Pod>([Verb::Get]), Access::resource("example.com", "widgets", [Verb::List])];
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Group and plural name; none for the kind of the handle.
    resource: Option<(String, String)>,
    /// Verbs per subresource; the object itself is the empty name.
    verbs: BTreeMap<String, BTreeSet<Verb>>,
}

impl Access {
    /// Nothing on the object itself; subresources may follow.
    pub fn none() -> Self {
        Self::default()
    }

    /// These verbs on objects of the handle's kind.
    pub fn to(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self::none().on("", verbs)
    }

    /// These verbs on objects of a kind.
    pub fn of<T: Kind>(verbs: impl IntoIterator<Item = Verb>) -> Self {
        let kind = KindInfo::of::<T>();
        Self::resource(kind.group, kind.plural, verbs)
    }

    /// These verbs on a resource by its group and plural name; `*` is any.
    pub fn resource(
        group: impl Into<String>,
        plural: impl Into<String>,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        Self {
            resource: Some((group.into(), plural.into())),
            ..Self::to(verbs)
        }
    }

    /// These verbs on every resource of every group, as a garbage collector needs them.
    pub fn everything(verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self::resource("*", "*", verbs)
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

    /// The rules it comes to, where `kind` is what goes without saying.
    pub(crate) fn grants(&self, kind: Option<&KindInfo>) -> Vec<Grant> {
        let implied = kind.map(|kind| (kind.group.clone(), kind.plural.clone()));
        let Some((group, plural)) = self.resource.clone().or(implied) else {
            return Vec::new();
        };
        let named = self.verbs.iter().filter(|(_, verbs)| !verbs.is_empty());
        named
            .map(|(subresource, verbs)| {
                let resource = if subresource.is_empty() {
                    plural.clone()
                } else {
                    format!("{plural}/{subresource}")
                };
                Grant::new(group.clone(), resource, verbs.iter().copied())
            })
            .collect()
    }

    /// Whether it names what it is about.
    pub(crate) fn names_resource(&self) -> bool {
        self.resource.is_some()
    }
}

/// Verbs on one resource: a rule in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) verbs: BTreeSet<String>,
}

impl Grant {
    /// Verbs on a resource by group and plural name (`pods`, `pods/binding`); `*` is any.
    pub(crate) fn new(
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
    pub(crate) fn of<T: Kind>(verbs: impl IntoIterator<Item = Verb>) -> Self {
        let kind = KindInfo::of::<T>();
        Self::new(kind.group, kind.plural, verbs)
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
