//! [`Scope`]: which objects of a kind are watched at all.

use kube::core::{Expression, Selector};
use serde_json::Value;

/// Restricts a watch to a namespace, to labels, or to fields. Controllers that ask for the same
/// kind and scope share one watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Scope {
    /// Every object of the kind.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only objects in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &Selector) -> Self {
        self.labels = Some(selector.to_string());
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

    /// The restriction in words, if there is one.
    pub(crate) fn describe(&self) -> Option<String> {
        let parts = [
            ("namespace", &self.namespace),
            ("labels", &self.labels),
            ("fields", &self.fields),
        ];
        let words: Vec<String> = parts
            .iter()
            .filter_map(|(what, value)| Some(format!("{what} {}", value.as_ref()?)))
            .collect();
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
        let in_namespace = self
            .namespace
            .as_deref()
            .is_none_or(|ns| text("metadata.namespace") == Some(ns));
        let fields = self.fields.as_deref().is_none_or(|fields| {
            fields
                .split(',')
                .filter_map(|term| term.split_once('='))
                .all(|(path, value)| text(path).unwrap_or("") == value)
        });
        in_namespace && fields && self.shows_labels(object)
    }

    fn shows_labels(&self, object: &Value) -> bool {
        // Selectors are written by `Selector`'s own Display; equality terms are what operators use
        // to shrink a cache, anything else is left to the bound on waiting.
        let Some(labels) = self.labels.as_deref() else {
            return true;
        };
        let have = object.pointer("/metadata/labels");
        labels
            .split(',')
            .filter_map(|term| term.split_once('='))
            .all(|(key, value)| {
                have.and_then(|labels| labels.get(key))
                    .and_then(Value::as_str)
                    == Some(value)
            })
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

impl Select {
    /// Everything in the namespace of the object being reconciled.
    pub fn all() -> Self {
        Self::default()
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
    pub fn everywhere(mut self) -> Self {
        self.namespace = Within::Everywhere;
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
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
