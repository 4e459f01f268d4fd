//! The kinds that sequences work on: those of `kinds.yaml`, and a random custom resource.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// A kind, a plain object of it, and where that object is varied.
#[allow(clippy::struct_field_names, reason = "as Kubernetes names it")]
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Kind {
    pub(crate) plural: String,
    /// The apiVersion.
    pub(crate) api: String,
    pub(crate) kind: String,
    /// Not in a namespace.
    #[serde(default)]
    pub(crate) cluster: bool,
    /// Has the scale subresource.
    #[serde(default)]
    pub(crate) scale: bool,
    /// What a plain object has besides its metadata.
    pub(crate) base: Value,
    /// Values to try, by JSON pointer.
    #[serde(default)]
    pub(crate) tweaks: BTreeMap<String, Vec<Value>>,
    /// The same, through the status subresource.
    #[serde(default)]
    pub(crate) status_tweaks: BTreeMap<String, Vec<Value>>,
}

impl Kind {
    pub(crate) fn read(path: &Path) -> Vec<Self> {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        let options = serde_saphyr::options! { strict_booleans: true };
        serde_saphyr::from_str_with_options(&text, options)
            .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()))
    }

    /// The path of the collection; `{ns}` is the sequence's namespace.
    pub(crate) fn collection(&self) -> String {
        let root = if self.api.contains('/') {
            "apis"
        } else {
            "api"
        };
        let within = if self.cluster { "" } else { "namespaces/{ns}/" };
        format!("/{root}/{}/{within}{}", self.api, self.plural)
    }

    /// Cluster-wide names carry the sequence's, or sequences would meet.
    pub(crate) fn name(&self, short: &str) -> String {
        if self.cluster {
            format!("{{seq}}-{short}")
        } else {
            short.to_owned()
        }
    }
}
