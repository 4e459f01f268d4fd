//! [`Scope`]: which objects of a kind are watched at all.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector};
use serde_json::Value;

use crate::cache::{Labels, MatchAll as _};

/// Restricts a watch to namespaces, to labels, or to fields, or to metadata alone. Controllers that
/// ask for the same kind and scope share one watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub(crate) namespaces: BTreeSet<String>,
    pub(crate) labels: Vec<Expression>,
    pub(crate) fields: Option<String>,
    pub(crate) metadata_only: bool,
}

impl Scope {
    /// Every object of the kind.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only objects in this namespace; given again, in these namespaces.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.insert(namespace.into());
        self
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &Selector) -> Self {
        self.labels.extend(selector.clone());
        self
    }

    /// Only objects with this value in this field, as in `("spec.nodeName", "node-1")`. The API
    /// server knows a few fields per kind.
    #[must_use]
    pub fn field(mut self, path: &str, value: &str) -> Self {
        let term = format!("{path}={value}");
        self.fields = Some(match self.fields.take() {
            Some(fields) => format!("{fields},{term}"),
            None => term,
        });
        self
    }

    /// Only the metadata of each object: for kinds that are large, or none of our business beyond
    /// their names and labels. Read as [`PartialObjectMeta`](kube::core::PartialObjectMeta).
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// The watches this scope takes: one per namespace, or one for all.
    pub(crate) fn sources(&self) -> Vec<Option<Box<str>>> {
        if self.namespaces.is_empty() {
            return vec![None];
        }
        let named = self.namespaces.iter().map(|one| Some(one.as_str().into()));
        named.collect()
    }

    pub(crate) fn label_selector(&self) -> Option<String> {
        let selector: Selector = self.labels.iter().cloned().collect();
        (!self.labels.is_empty()).then(|| selector.to_string())
    }

    /// The restriction in words, if there is one.
    pub(crate) fn describe(&self) -> Option<String> {
        let namespaces: Vec<&str> = self.namespaces.iter().map(String::as_str).collect();
        let parts = [
            (!namespaces.is_empty()).then(|| format!("namespace {}", namespaces.join(" and "))),
            self.label_selector()
                .map(|labels| format!("labels {labels}")),
            self.fields
                .as_ref()
                .map(|fields| format!("fields {fields}")),
            self.metadata_only.then(|| "metadata only".to_owned()),
        ];
        let words: Vec<String> = parts.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Whether a watch of this scope shows the object.
    pub(crate) fn shows(&self, object: &Value) -> bool {
        let text = |path: &str| {
            let mut at = object;
            for step in path.split('.') {
                at = at.get(step)?;
            }
            at.as_str()
        };
        let in_namespace = self.namespaces.is_empty()
            || text("metadata.namespace").is_some_and(|ns| self.namespaces.contains(ns));
        let fields = self.fields.as_deref().is_none_or(|fields| {
            fields
                .split(',')
                .filter_map(|term| term.split_once('='))
                .all(|(path, value)| text(path).unwrap_or("") == value)
        });
        in_namespace && fields && Labels::of_metadata(&object["metadata"]).match_all(&self.labels)
    }
}

/// What selects objects by label: a [`Selector`], a label map, or a `LabelSelector` as objects
/// carry it.
pub trait IntoSelector {
    /// The selector, or none if it selects nothing (an invalid expression selects nothing).
    fn into_selector(self) -> Option<Selector>;
}

impl IntoSelector for Selector {
    fn into_selector(self) -> Option<Selector> {
        Some(self)
    }
}

impl IntoSelector for std::collections::BTreeMap<String, String> {
    fn into_selector(self) -> Option<Selector> {
        Some(self.into_iter().collect())
    }
}

impl IntoSelector for k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
    fn into_selector(self) -> Option<Selector> {
        self.try_into().ok()
    }
}

impl<S: IntoSelector> IntoSelector for Option<S> {
    fn into_selector(self) -> Option<Selector> {
        self.and_then(S::into_selector)
    }
}

/// Which objects of a cache a `list` returns.
///
/// A selector alone means: in the namespace of the object being reconciled (everywhere, if that
/// is cluster-scoped).
#[derive(Clone, Debug, Default)]
pub struct Select {
    pub(crate) labels: Selector,
    pub(crate) namespace: Within,
    /// Set when an invalid selector was given: it selects nothing.
    pub(crate) nothing: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Within {
    #[default]
    Own,
    Everywhere,
    Namespace(String),
}

impl Within {
    /// The namespace that is meant; none if all are.
    pub(crate) fn namespace<'a>(&'a self, own: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::Own => own,
            Self::Everywhere => None,
            Self::Namespace(namespace) => Some(namespace.as_str()),
        }
    }
}

impl Select {
    /// Every object in the namespace of the object being reconciled (in all, if that is
    /// cluster-scoped).
    pub fn own_namespace() -> Self {
        Self::default()
    }

    /// Every object in every namespace.
    pub fn all_namespaces() -> Self {
        Self::default().in_all_namespaces()
    }

    /// Only objects with these labels.
    pub fn labels(selector: impl IntoSelector) -> Self {
        match selector.into_selector() {
            Some(labels) => Self {
                labels,
                ..Self::default()
            },
            None => Self {
                nothing: true,
                ..Self::default()
            },
        }
    }

    /// In every namespace.
    #[must_use]
    pub fn in_all_namespaces(mut self) -> Self {
        self.namespace = Within::Everywhere;
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Within::Namespace(namespace.into());
        self
    }

    /// The selector's expressions, or none if nothing is selected.
    pub(crate) fn expressions(self) -> Option<(Vec<Expression>, Within)> {
        (!self.nothing).then(|| (self.labels.into_iter().collect(), self.namespace))
    }
}

impl<S: IntoSelector> From<S> for Select {
    fn from(selector: S) -> Self {
        Self::labels(selector)
    }
}
