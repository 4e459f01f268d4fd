//! A kind that a project defines or has webhooks for, and the names that follow from it.

use serde::{Deserialize, Serialize};

use super::plural::plural_of;
use crate::error::{Error, Result};

/// One entry of the `PROJECT` file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    /// Whether the project defines the kind; otherwise it belongs to Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<Api>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) controller: bool,
    /// The project's domain; none for kinds of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain: Option<String>,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) version: String,
    #[serde(default, skip_serializing_if = "Webhooks::is_none")]
    pub(crate) webhooks: Webhooks,
}

/// How the kind is defined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Api {
    pub(crate) namespaced: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
}

/// Which webhooks there are for a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Webhooks {
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) defaulting: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) validation: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) conversion: bool,
}

impl Webhooks {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Resource {
    /// A kind of the project's own.
    pub(crate) fn own(
        domain: &str,
        group: &str,
        version: &str,
        kind: &str,
        plural: Option<&str>,
        api: Api,
    ) -> Result<Self> {
        check_group(group)?;
        check_version(version)?;
        check_kind(kind)?;
        for name in plural
            .iter()
            .copied()
            .chain(api.short_names.iter().map(String::as_str))
        {
            check_label("plural or short name", name)?;
        }
        Ok(Self {
            api: Some(api),
            controller: true,
            domain: Some(domain.to_owned()),
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: plural.map_or_else(|| plural_of(kind), str::to_owned),
            version: version.to_owned(),
            webhooks: Webhooks::default(),
        })
    }

    /// The group as in `apiVersion`.
    pub(crate) fn full_group(&self) -> String {
        match (&self.domain, self.group.as_str()) {
            (Some(domain), "") => domain.clone(),
            (Some(domain), group) => format!("{group}.{domain}"),
            (None, group) => group.to_owned(),
        }
    }

    /// `group/version, Kind=…`, for people.
    pub(crate) fn shown(&self) -> String {
        match self.full_group().as_str() {
            "" => format!("{} {}", self.version, self.kind),
            group => format!("{group}/{} {}", self.version, self.kind),
        }
    }

    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

/// `SidecarSet` as `sidecar_set`; `ETCDCluster` as `etcd_cluster`.
pub(crate) fn snake(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut snake = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let after_lower = index > 0 && !letters[index - 1].is_uppercase();
        let before_lower = letters
            .get(index + 1)
            .is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && index > 0 && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Words that Rust keeps for itself.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Names that the generated code uses for something else.
const TAKEN: &[&str] = &[
    "AnyController",
    "AnyWebhook",
    "Api",
    "BTreeMap",
    "Box",
    "Clone",
    "Condition",
    "ConfigMap",
    "Context",
    "Controller",
    "Copy",
    "CustomResource",
    "Debug",
    "Declare",
    "Default",
    "DeleteParams",
    "Deserialize",
    "Drop",
    "Eq",
    "Err",
    "ExitCode",
    "From",
    "Into",
    "Iterator",
    "JsonSchema",
    "LabelSelector",
    "Action",
    "None",
    "ObjectMeta",
    "Ok",
    "Operation",
    "Operator",
    "Option",
    "Owned",
    "PartialEq",
    "Patch",
    "PatchParams",
    "PostParams",
    "Reconciler",
    "ResourceExt",
    "Result",
    "Self",
    "Send",
    "Serialize",
    "Some",
    "String",
    "Sync",
    "TestCluster",
    "ToOwned",
    "ToString",
    "Vec",
    "Verdict",
    "Versions",
    "Watched",
    "Webhook",
];

/// Whether generated code needs a name for itself.
pub(crate) fn is_taken(name: &str) -> bool {
    TAKEN.contains(&name)
}

/// A module's name for a kind: a word of Rust gets a tail.
pub(crate) fn module_of(kind: &str) -> String {
    let snake = snake(kind);
    let taken = [
        "alloc",
        "api",
        "core",
        "k8s_openapi",
        "kube",
        "lib",
        "main",
        "operator",
        "schemars",
        "serde",
        "serde_json",
        "std",
        "windlass",
        "windlass_cluster",
    ];
    if KEYWORDS.contains(&snake.as_str()) || taken.contains(&snake.as_str()) {
        return snake + "_kind";
    }
    snake
}

fn check_kind(kind: &str) -> Result<()> {
    let mut letters = kind.chars();
    let first = letters
        .next()
        .is_some_and(|first| first.is_ascii_uppercase());
    if !first || !letters.all(|letter| letter.is_ascii_alphanumeric()) {
        return Err(Error::Other(format!(
            "the kind {kind:?} must be letters and digits in CamelCase, such as Memcached"
        )));
    }
    if kind.len() > 63 {
        return Err(Error::Other(format!(
            "the kind {kind} has {} characters; at most 63 are allowed",
            kind.len()
        )));
    }
    if is_taken(kind) {
        return Err(Error::Other(format!(
            "the kind {kind} would clash with a name that the generated code uses; choose another, such as My{kind}"
        )));
    }
    Ok(())
}

fn check_group(group: &str) -> Result<()> {
    if group.is_empty() {
        return Ok(());
    }
    for label in group.split('.') {
        check_label("group", label)?;
    }
    Ok(())
}

/// `v1`, `v1beta2`, `v2alpha1`.
fn check_version(version: &str) -> Result<()> {
    let digits = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0')
    };
    let valid = version.strip_prefix('v').is_some_and(|rest| {
        match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
            Some((major, minor)) => digits(major) && digits(minor),
            None => digits(rest),
        }
    });
    if valid {
        return Ok(());
    }
    Err(Error::Other(format!(
        "the version {version:?} must be like v1, v1beta1 or v1alpha1"
    )))
}

/// Whether a name can be a label of a DNS name.
pub(crate) fn check_label(what: &str, name: &str) -> Result<()> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = name.as_bytes();
    if name.len() <= 63
        && bytes.iter().all(|byte| inner(*byte))
        && edge(bytes.first())
        && edge(bytes.last())
    {
        return Ok(());
    }
    Err(Error::Other(format!(
        "the {what} {name:?} must be lower-case letters, digits and dashes, at most 63, beginning and ending with a letter or digit"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_become_names_of_modules() {
        for (kind, module) in [
            ("Memcached", "memcached"),
            ("SidecarSet", "sidecar_set"),
            ("ETCDCluster", "etcd_cluster"),
            ("MySQL", "my_sql"),
            ("Type", "type_kind"),
            ("Kafka2Topic", "kafka2_topic"),
        ] {
            assert_eq!(module_of(kind), module);
        }
    }

    #[test]
    fn odd_names_are_refused_with_what_would_do() {
        let api = || Api {
            namespaced: true,
            short_names: Vec::new(),
        };
        for (group, version, kind, says) in [
            ("cache", "v1", "memcached", "CamelCase"),
            ("cache", "v1", "Mem-cached", "CamelCase"),
            ("cache", "v1", "", "CamelCase"),
            ("cache", "v1", "Context", "MyContext"),
            ("cache", "1", "Demo", "v1beta1"),
            ("cache", "v0", "Demo", "v1beta1"),
            ("cache", "v1gamma1", "Demo", "v1beta1"),
            ("Cache", "v1", "Demo", "lower-case"),
            ("-cache", "v1", "Demo", "lower-case"),
        ] {
            let refused = Resource::own("example.com", group, version, kind, None, api());
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        }
        let fine = Resource::own("example.com", "", "v1alpha1", "Demo", None, api()).unwrap();
        assert_eq!(
            (fine.full_group().as_str(), fine.plural.as_str()),
            ("example.com", "demoes")
        );
    }
}
