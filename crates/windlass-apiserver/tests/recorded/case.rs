//! A case: requests in order, as written in `cases/<name>.yaml`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hooks::Script;

/// One scenario. `{ns}` in it stands for the namespace made for it, and `{name}` for a value that an
/// earlier step captured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Case {
    /// What the case shows.
    #[allow(dead_code, reason = "for the reader of the file")]
    pub(crate) about: String,
    /// Whether a namespace with a `ServiceAccount` named `default` is made before the first step.
    #[serde(default = "yes")]
    pub(crate) namespace: bool,
    /// Which server it is about.
    #[serde(default)]
    pub(crate) server: Server,
    /// Names for what its steps say again and again, mostly paths: `{name}` as for captured values.
    #[serde(default, rename = "let")]
    pub(crate) names: BTreeMap<String, String>,
    /// What the webhook at each path answers: see `hooks`.
    #[serde(default)]
    pub(crate) webhooks: BTreeMap<String, Script>,
    pub(crate) steps: Vec<Step>,
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_admin(identity: &Identity) -> bool {
    *identity == Identity::Admin
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How the server of a case is set up.
#[derive(Debug, Default, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Server {
    /// As it comes.
    #[default]
    Plain,
    /// With its times set short, so that what takes minutes can be recorded: `scripts/record` has
    /// the real server's flags, `servers.rs` ours.
    Hasty,
}

impl Server {
    /// As `WINDLASS_RECORD_SERVER` names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Hasty => "hasty",
        }
    }
}

/// What a patch's body is.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Patch {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Patch {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// One request, and what of its answer matters.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) query: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    /// JSON unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    /// The content type of a patch, for short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<Patch>,
    /// Only brings about what later steps are about: counts for no rule.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) setup: bool,
    /// How long to wait before it is sent, in milliseconds: for what only time brings about.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) after_millis: u64,
    /// Sent as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Value>,
    /// Sent as it stands, for what is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw_body: Option<String>,
    /// Sent as the bytes it stands for, for what is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base64_body: Option<String>,
    /// Sent as it stands, for what is too long to be written out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) long_body: Option<Long>,
    /// Sent as the bytes these digits stand for, for what is not even text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hex_body: Option<String>,
    /// Who asks.
    #[serde(default, rename = "as", skip_serializing_if = "is_admin")]
    pub(crate) identity: Identity,
    /// Names for parts of the answer (JSON pointers), for later steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) capture: BTreeMap<String, String>,
    /// Makes this a watch: how much of the stream to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<Watch>,
    /// Sends again until the answer is as wanted: for what a server does in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Until>,
    /// What a generated name in the answer begins with, where nothing else tells that it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) generated: Option<String>,
    /// Of long lists in the answer, what to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keep: Option<Keep>,
}

/// A text with something in it many times.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Long {
    #[serde(default)]
    before: String,
    repeated: String,
    times: usize,
    #[serde(default)]
    between: String,
    /// As often again.
    #[serde(default)]
    closed: String,
    #[serde(default)]
    after: String,
}

impl Long {
    pub(crate) fn text(&self) -> String {
        let (repeated, closed) = (&self.repeated, &self.closed);
        format!(
            "{}{}{}{}{}",
            self.before,
            repeated.repeat(self.times),
            self.between,
            closed.repeat(self.times),
            self.after
        )
    }
}

/// Who asks: the administrator of the kubeconfig unless said otherwise.
#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Identity {
    #[default]
    Admin,
    /// No credentials at all.
    Anonymous,
    /// Who has a certificate of another cluster's administrator.
    Stranger,
}

/// How much of a watch to read: up to `events`, or what comes until the server ends it (ask it to
/// by the query's `timeoutSeconds`).
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<usize>,
    /// Up to the first event about an object of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    /// Read beside the steps that follow, to the end of the case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) background: bool,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Until {
    /// The wanted HTTP status.
    #[serde(default)]
    pub(crate) status: Option<u16>,
    /// Wanted values by JSON pointer.
    #[serde(default)]
    pub(crate) equals: BTreeMap<String, Value>,
    /// By JSON pointer, what elements of a list must have, each of another element.
    #[serde(default)]
    pub(crate) contains: BTreeMap<String, Vec<BTreeMap<String, Value>>>,
}

/// Keeps the elements of the list at `list` whose `field` is one of `values`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keep {
    pub(crate) list: String,
    pub(crate) field: String,
    pub(crate) values: Vec<Value>,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        // YAML 1.2, as people read it: `y` and `no` are strings.
        let options = serde_saphyr::options! { strict_booleans: true };
        let case: Self = serde_saphyr::from_str_with_options(&text, options)
            .unwrap_or_else(|error| panic!("parsing {}: {error}", path.display()));
        let mut names: Vec<_> = case.steps.iter().map(|step| &step.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(
            names.len(),
            case.steps.len(),
            "two steps of {} share a name",
            path.display()
        );
        case
    }
}
