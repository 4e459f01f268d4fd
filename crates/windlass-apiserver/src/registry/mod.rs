//! Which resources the server has right now: the built-in ones, and those of established CRDs.

pub(crate) mod custom;
pub(crate) mod derived;
pub(crate) mod facts;
pub(crate) mod resource;
pub(crate) mod types;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use crate::http::ResourceRequest;
use crate::kinds;
use crate::registry::resource::Resource;

/// A group in discovery: its name and versions, the preferred one first.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) versions: Vec<String>,
}

/// All resources, by group, version and plural.
#[derive(Debug)]
pub(crate) struct Registry {
    resources: RwLock<Arc<Known>>,
}

/// A fixed picture of the registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Built-in resources in the order discovery shows them, then custom ones.
    all: Vec<Arc<Resource>>,
    /// Those of each plural: how requests find theirs without making an address.
    by_plural: HashMap<String, Vec<Arc<Resource>>>,
}

impl Registry {
    /// The built-in kinds that can be stored, and the reviews, which are answered.
    pub(crate) fn built_in() -> Self {
        let mut known = Known::default();
        for facts in facts::get().resources.iter().filter(|facts| {
            let has = |wanted: &str| facts.verbs.iter().any(|verb| verb == wanted);
            let strategy = kinds::find(&facts.group, &facts.version, &facts.plural);
            has("create") && (has("list") || strategy.is_only_posted())
        }) {
            known.all.push(Arc::new(Resource::from_facts(facts)));
        }
        known.index();
        Self {
            resources: RwLock::new(Arc::new(known)),
        }
    }

    /// What is served at this moment.
    pub(crate) fn known(&self) -> Arc<Known> {
        self.resources
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.known().at(group, version, plural).cloned()
    }

    /// Replaces the versions of a custom resource by `versions` (none to remove it). What is built
    /// in stays, whatever a definition calls itself.
    pub(crate) fn set_custom(&self, group: &str, plural: &str, versions: Vec<Resource>) {
        let mut guard = self
            .resources
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut known = Known::clone(&guard);
        known
            .all
            .retain(|one| !one.is_custom() || !one.is_version_of(group, plural));
        for mut resource in versions {
            // What was counted of the definition before is gone on with.
            if let Some(before) = guard.at(group, &resource.version, plural) {
                resource.counts = before.counts.clone();
            }
            known.all.push(Arc::new(resource));
        }
        known.index();
        *guard = Arc::new(known);
    }
}

impl Known {
    fn index(&mut self) {
        self.by_plural.clear();
        for resource in &self.all {
            if let Some(same) = self.by_plural.get_mut(&resource.plural) {
                same.push(resource.clone());
            } else {
                let same = vec![resource.clone()];
                self.by_plural.insert(resource.plural.clone(), same);
            }
        }
    }

    fn at(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let mut same = self.by_plural.get(plural)?.iter();
        same.find(|resource| resource.group == group && resource.version == version)
    }

    /// Every resource in discovery order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.all.iter()
    }

    /// Whether a group has resources that come from definitions.
    pub(crate) fn has_custom(&self, group: &str) -> bool {
        self.all
            .iter()
            .any(|resource| resource.is_custom() && resource.group == group)
    }

    fn serves(&self, group: &str, version: &str) -> bool {
        self.all
            .iter()
            .any(|resource| resource.group == group && resource.version == version)
    }

    /// The resources of one group and version; `None` when there is no such version.
    pub(crate) fn of_version(&self, group: &str, version: &str) -> Option<Vec<&Arc<Resource>>> {
        let found: Vec<_> = self
            .all()
            .filter(|resource| resource.group == group && resource.version == version)
            .collect();
        (!found.is_empty()).then_some(found)
    }

    /// Groups in discovery order, core left out: built-in ones as Kubernetes orders them, then custom ones by name.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = facts::get()
            .groups
            .iter()
            .map(|group| Group {
                name: group.name.clone(),
                versions: group.versions.clone(),
            })
            .collect();
        let mut custom: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for resource in self.all().filter(|resource| resource.is_custom()) {
            let versions = custom.entry(&resource.group).or_default();
            if !versions.contains(&resource.version) {
                versions.push(resource.version.clone());
            }
        }
        for (name, mut versions) in custom {
            versions.sort_by(|a, b| windlass_schema::compare_versions(a, b));
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.versions.extend(versions),
                None => groups.push(Group {
                    name: name.to_owned(),
                    versions,
                }),
            }
        }
        groups.retain(|group| !group.name.is_empty());
        for group in &mut groups {
            group
                .versions
                .retain(|version| self.serves(&group.name, version));
        }
        groups.retain(|group| !group.versions.is_empty());
        groups
    }

    /// The resource a request is about, where its path has the form the resource's scope asks for.
    pub(crate) fn find(&self, request: &ResourceRequest) -> Option<Arc<Resource>> {
        let found = self.at(&request.group, &request.version, &request.resource)?;
        (found.namespaced || request.namespace.is_none()).then(|| found.clone())
    }

    /// Whether a path of a group leads anywhere: in a built-in group every one does, if only to a
    /// Status that says no; in others, those that are served.
    pub(crate) fn is_path(group: &str) -> bool {
        facts::get().groups.iter().any(|known| known.name == group)
    }
}
