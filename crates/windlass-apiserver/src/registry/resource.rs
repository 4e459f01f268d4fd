//! What the server knows about one resource at one version, built-in and custom alike.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::crd::CustomVersion;
use crate::http::Counts;
use crate::kinds::{self, Strategy};
use crate::node::PROXY;
use crate::registry::facts::{ColumnFacts, ResourceFacts};
use crate::registry::types::Type;
use crate::status::Subject;
use crate::store::TableName;

/// Subresources this server implements; others are not advertised.
pub(crate) const SERVED_SUBRESOURCES: &[&str] = &[
    "approval",
    "attach",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "finalize",
    "log",
    "portforward",
    PROXY,
    "resize",
    "scale",
    "status",
    "token",
];

/// A subresource and what its body is.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) verbs: Vec<String>,
    /// Group, version and kind of the body where it is not the resource's own.
    pub(crate) body: Option<(String, String, String)>,
}

/// A resource at a version.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) columns: Vec<ColumnFacts>,
    /// Fields that field selectors may name, besides name and namespace, as they are stored.
    pub(crate) selectable: Vec<String>,
    pub(crate) table: TableName,
    pub(crate) ty: Type,
    /// How often it was asked for what.
    pub(crate) counts: Arc<Counts>,
    /// Present for resources that come from a CRD.
    pub(crate) custom: Option<Arc<CustomVersion>>,
    /// What its kind does its own way.
    pub(crate) strategy: &'static dyn Strategy,
}

impl Resource {
    pub(crate) fn from_facts(facts: &ResourceFacts) -> Self {
        let subresources = facts
            .subresources
            .iter()
            .filter(|sub| SERVED_SUBRESOURCES.contains(&sub.name.as_str()))
            .map(|sub| Subresource {
                name: sub.name.clone(),
                verbs: sub.verbs.clone(),
                body: sub.kind.clone().map(|kind| {
                    (
                        sub.group.clone().unwrap_or_default(),
                        sub.version.clone().unwrap_or_default(),
                        kind,
                    )
                }),
            })
            .collect();
        let strategy = kinds::find(&facts.group, &facts.version, &facts.plural);
        Self {
            group: facts.group.clone(),
            version: facts.version.clone(),
            plural: facts.plural.clone(),
            singular: facts.singular.clone(),
            kind: facts.kind.clone(),
            list_kind: format!("{}List", facts.kind),
            namespaced: facts.namespaced,
            verbs: facts.verbs.clone(),
            short_names: facts.short_names.clone(),
            categories: facts.categories.clone(),
            subresources,
            columns: facts.columns.clone(),
            selectable: facts
                .field_selectors
                .iter()
                .filter(|field| !field.starts_with("metadata."))
                .map(|field| strategy.stored_field(field))
                .collect(),
            table: TableName::new(strategy.table_group(&facts.group), &facts.plural),
            ty: Type::Named(facts.type_name.as_str().into()),
            counts: Arc::default(),
            custom: None,
            strategy,
        }
    }

    /// Where a field that a selector names is found in a stored object.
    pub(crate) fn stored_field(&self, field: &str) -> String {
        self.strategy.stored_field(field)
    }

    /// Whether objects of it are kept, rather than answered.
    pub(crate) fn is_stored(&self) -> bool {
        !self.strategy.is_review()
    }

    /// Whether it is one of the versions of this resource.
    pub(crate) fn is_version_of(&self, group: &str, plural: &str) -> bool {
        [&*self.group, &*self.plural] == [group, plural]
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// `v1`, `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The fingerprint of the version objects are stored in, by which clients see that it changed.
    pub(crate) fn storage_version_hash(&self) -> String {
        // Kubernetes stores some kinds in a version it no longer serves, or in another's.
        let (group, version) = match &self.custom {
            Some(custom) => (&*self.group, &*custom.objects.storage_version),
            None => self.strategy.storage_version(&self.group, &self.version),
        };
        let text = format!("{group}/{version}/{}", self.kind);
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        STANDARD.encode(digest.as_ref().get(..8).unwrap_or_default())
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether status is written apart from the rest.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// For errors that name the plural.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            group: &self.group,
            kind: &self.plural,
        }
    }

    /// For errors that name the Kind.
    pub(crate) fn kind_subject(&self) -> Subject<'_> {
        Subject {
            group: &self.group,
            kind: &self.kind,
        }
    }
}
