//! Releases as Helm stores them.
//!
//! A revision of a release is a Secret named `sh.helm.release.v1.NAME.vREVISION` whose data is a
//! JSON document, compressed and in base64. What Helm wrote and this module does not know stays in
//! the document, so that a release may be worked on by both.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use windlass_charts::{Chart, Hook, Rendered, Values};

use super::stored_chart;

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// How large the document of a release may be.
const MAX_SIZE: u64 = 64 << 20;
const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];

/// Where a revision of a release is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Status {
    Unknown,
    Deployed,
    Uninstalled,
    Superseded,
    Failed,
    Uninstalling,
    PendingInstall,
    PendingUpgrade,
    PendingRollback,
}

const STATUSES: [(Status, &str); 9] = [
    (Status::Unknown, "unknown"),
    (Status::Deployed, "deployed"),
    (Status::Uninstalled, "uninstalled"),
    (Status::Superseded, "superseded"),
    (Status::Failed, "failed"),
    (Status::Uninstalling, "uninstalling"),
    (Status::PendingInstall, "pending-install"),
    (Status::PendingUpgrade, "pending-upgrade"),
    (Status::PendingRollback, "pending-rollback"),
];

impl Status {
    /// As Helm writes it.
    pub fn name(self) -> &'static str {
        let known = STATUSES.iter().find(|(status, _)| *status == self);
        known.map_or("unknown", |(_, name)| name)
    }

    fn parse(name: &str) -> Self {
        let known = STATUSES.iter().find(|(_, known)| *known == name);
        known.map_or(Self::Unknown, |(status, _)| *status)
    }

    /// Whether an operation has begun and not ended.
    pub fn is_pending(self) -> bool {
        matches!(
            self,
            Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback
        )
    }
}

/// Why a Secret is no release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode release {name}: {reason}")]
pub struct DecodeError {
    name: String,
    reason: String,
}

/// What a new revision is made of.
pub struct Contents<'a> {
    /// The name of the release.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The revision.
    pub revision: u64,
    /// The chart.
    pub chart: &'a Chart,
    /// The values that were given.
    pub config: &'a Values,
    /// What the chart became.
    pub rendered: &'a Rendered,
}

/// One revision of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    document: Map<String, Value>,
    /// The labels of the Secret that are not Helm's.
    labels: Map<String, Value>,
}

impl Release {
    /// A revision that is about to be deployed. `first` is when the release was deployed for the
    /// first time, if it was before.
    pub fn new(
        contents: &Contents<'_>,
        status: Status,
        description: &str,
        now: &str,
        first: Option<&str>,
    ) -> Self {
        let hooks: Vec<Value> = contents.rendered.hooks.iter().map(stored_hook).collect();
        let mut info = json!({
            "first_deployed": first.unwrap_or(now),
            "last_deployed": now,
            "description": description,
            "status": status.name(),
        });
        if !contents.rendered.notes.is_empty() {
            info["notes"] = json!(contents.rendered.notes);
        }
        let mut document = json!({
            "name": contents.name,
            "info": info,
            "chart": stored_chart::chart(contents.chart),
            "manifest": contents.rendered.manifest(),
            "version": contents.revision,
            "namespace": contents.namespace,
            "apply_method": "ssa",
        });
        if !contents.config.is_empty() {
            document["config"] = json!(contents.config);
        }
        if !hooks.is_empty() {
            document["hooks"] = json!(hooks);
        }
        Self {
            document: match document {
                Value::Object(document) => document,
                _ => Map::new(),
            },
            labels: Map::new(),
        }
    }

    /// A revision that brings an earlier one back.
    pub fn rollback_to(earlier: &Self, revision: u64, status: Status, now: &str) -> Self {
        let mut release = earlier.clone();
        release
            .document
            .insert("version".to_owned(), json!(revision));
        release.set_info("status", json!(status.name()));
        release.set_info("last_deployed", json!(now));
        let description = format!("Rollback to {}", earlier.revision());
        release.set_info("description", json!(description));
        release.set_info("rollback_revision", json!(earlier.revision()));
        release
    }

    /// Reads a release from its Secret.
    pub fn from_secret(secret: &Value) -> Result<Self, DecodeError> {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        let failed = |reason: String| DecodeError {
            name: name.to_owned(),
            reason,
        };
        let Some(outer) = secret["data"]["release"].as_str() else {
            return Err(failed("the Secret has no key release".to_owned()));
        };
        let decode = |text: &[u8]| STANDARD.decode(text).map_err(|why| failed(why.to_string()));
        // Once for the Secret, once for Helm.
        let packed = decode(&decode(outer.as_bytes())?)?;
        let bytes = if packed.starts_with(GZIP) {
            let mut bytes = Vec::new();
            GzDecoder::new(packed.as_slice())
                .take(MAX_SIZE + 1)
                .read_to_end(&mut bytes)
                .map_err(|why| failed(why.to_string()))?;
            if bytes.len() as u64 > MAX_SIZE {
                return Err(failed(format!("it is larger than {MAX_SIZE} bytes")));
            }
            bytes
        } else {
            packed
        };
        let document = match serde_json::from_slice(&bytes) {
            Ok(Value::Object(document)) => document,
            Ok(_) => return Err(failed("it is not an object".to_owned())),
            Err(why) => return Err(failed(why.to_string())),
        };
        let mut labels = secret["metadata"]["labels"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        for known in ["name", "owner", "status", "version"] {
            labels.remove(known);
        }
        Ok(Self { document, labels })
    }

    /// The Secret that keeps it. The same release makes the same Secret.
    pub fn secret(&self) -> Value {
        let mut labels = self.labels.clone();
        for (name, value) in [
            ("name", self.name().to_owned()),
            ("owner", "helm".to_owned()),
            ("status", self.status().name().to_owned()),
            ("version", self.revision().to_string()),
        ] {
            labels.insert(name.to_owned(), json!(value));
        }
        let document = serde_json::to_vec(&self.document).unwrap_or_default();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Nothing is refused by memory.
        let _ = encoder.write_all(&document);
        let packed = encoder.finish().unwrap_or_default();
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": secret_name(self.name(), self.revision()),
                "namespace": self.namespace(),
                "labels": labels,
            },
            "type": SECRET_TYPE,
            "data": {"release": STANDARD.encode(STANDARD.encode(packed))},
        })
    }

    fn text(&self, name: &str) -> &str {
        self.document
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn info(&self, name: &str) -> Option<&Value> {
        self.document.get("info")?.get(name)
    }

    fn set_info(&mut self, name: &str, value: Value) {
        let info = self.document.entry("info").or_insert_with(|| json!({}));
        if let Value::Object(info) = info {
            info.insert(name.to_owned(), value);
        }
    }

    /// The release's name.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.text("namespace")
    }

    /// Its revision.
    pub fn revision(&self) -> u64 {
        self.document
            .get("version")
            .and_then(Value::as_u64)
            .unwrap_or(0)
    }

    /// Where it is in its life.
    pub fn status(&self) -> Status {
        let status = self.info("status").and_then(Value::as_str);
        status.map_or(Status::Unknown, Status::parse)
    }

    /// Sets where it is in its life, and why.
    pub fn set_status(&mut self, status: Status, description: &str) {
        self.set_info("status", json!(status.name()));
        self.set_info("description", json!(description));
    }

    /// What is said about it.
    pub fn description(&self) -> &str {
        let description = self.info("description").and_then(Value::as_str);
        description.unwrap_or_default()
    }

    /// When the release was deployed for the first time.
    pub fn first_deployed(&self) -> Option<&str> {
        self.info("first_deployed")?.as_str()
    }

    /// What `NOTES.txt` became.
    pub fn notes(&self) -> &str {
        self.info("notes")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The objects as one text.
    pub fn manifest(&self) -> &str {
        self.text("manifest")
    }

    /// The name of the chart; empty if there is none.
    pub fn chart_name(&self) -> &str {
        let name = self
            .document
            .get("chart")
            .map(|chart| &chart["metadata"]["name"]);
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// The values that were given.
    pub fn config(&self) -> Values {
        let config = self.document.get("config").and_then(Value::as_object);
        config.cloned().unwrap_or_default()
    }

    /// Its hooks.
    pub fn hooks(&self) -> impl Iterator<Item = StoredHook<'_>> {
        let hooks = self.document.get("hooks").and_then(Value::as_array);
        hooks.into_iter().flatten().map(StoredHook)
    }

    /// The revision that it brought back.
    pub fn rollback_revision(&self) -> Option<u64> {
        self.info("rollback_revision")?
            .as_u64()
            .filter(|revision| *revision > 0)
    }

    /// When it was deployed.
    pub fn last_deployed(&self) -> Option<&str> {
        self.info("last_deployed")?.as_str()
    }

    /// Whether its hooks are those that were rendered.
    pub fn has_hooks_of(&self, rendered: &Rendered) -> bool {
        let mut stored: Vec<(&str, &str)> = self
            .hooks()
            .map(|hook| (hook.path(), hook.manifest()))
            .collect();
        let hooks = rendered.hooks.iter().map(|hook| &hook.manifest);
        let mut now: Vec<(&str, &str)> = hooks
            .map(|one| (one.source.as_str(), one.text.as_str()))
            .collect();
        stored.sort_unstable();
        now.sort_unstable();
        stored == now
    }

    /// Forgets how far its hooks were.
    pub fn forget_hook_phases(&mut self) {
        let hooks = self.document.get_mut("hooks").and_then(Value::as_array_mut);
        for hook in hooks.into_iter().flatten() {
            hook["last_run"] = json!({"phase": ""});
        }
    }

    /// Records that a hook began, or how it ended.
    pub fn set_hook_phase(&mut self, path: &str, name: &str, phase: &str, now: &str) {
        let hooks = self.document.get_mut("hooks").and_then(Value::as_array_mut);
        for hook in hooks.into_iter().flatten() {
            if hook["path"] != path || hook["name"] != name {
                continue;
            }
            if phase == "Running" || hook["last_run"]["started_at"].is_null() {
                hook["last_run"] = json!({"started_at": now, "phase": phase});
            }
            if phase != "Running" {
                hook["last_run"]["completed_at"] = json!(now);
                hook["last_run"]["phase"] = json!(phase);
            }
        }
    }
}

/// The name of the Secret of a revision.
pub fn secret_name(release: &str, revision: u64) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// A hook of a stored release.
#[derive(Clone, Copy, Debug)]
pub struct StoredHook<'a>(&'a Value);

impl<'a> StoredHook<'a> {
    fn text(self, name: &str) -> &'a str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn texts(self, name: &str) -> impl Iterator<Item = &'a str> {
        let list = self.0[name].as_array();
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The name of its object.
    pub fn name(self) -> &'a str {
        self.text("name")
    }

    /// The template it comes from.
    pub fn path(self) -> &'a str {
        self.text("path")
    }

    /// The object as text.
    pub fn manifest(self) -> &'a str {
        self.text("manifest")
    }

    /// When it runs.
    pub fn events(self) -> impl Iterator<Item = &'a str> {
        self.texts("events")
    }

    /// When its object is deleted.
    pub fn delete_policies(self) -> impl Iterator<Item = &'a str> {
        self.texts("delete_policies")
    }

    /// Lighter ones run first.
    pub fn weight(self) -> i64 {
        self.0["weight"].as_i64().unwrap_or(0)
    }

    /// How its last run ended: `Unknown`, `Running`, `Succeeded` or `Failed`; empty before the first.
    pub fn phase(self) -> &'a str {
        self.0["last_run"]["phase"].as_str().unwrap_or_default()
    }
}

fn stored_hook(hook: &Hook) -> Value {
    let mut stored = json!({
        "name": hook.name,
        "kind": hook.manifest.kind,
        "path": hook.manifest.source,
        "manifest": hook.manifest.text,
        "events": hook.events,
        "last_run": {"phase": ""},
    });
    if hook.weight != 0 {
        stored["weight"] = json!(hook.weight);
    }
    for (name, list) in [
        ("delete_policies", &hook.delete_policies),
        ("output_log_policies", &hook.log_policies),
    ] {
        if !list.is_empty() {
            stored[name] = json!(list);
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use windlass_charts::{File, Options, render};

    use super::*;

    fn release() -> Release {
        let file = |name: &str, text: &str| File {
            name: name.to_owned(),
            data: text.into(),
        };
        let chart = Chart::from_files(vec![
            file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            file("templates/a.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"),
            file(
                "templates/b.yaml",
                "kind: Job\napiVersion: batch/v1\nmetadata: {name: b, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: '5'}}\n",
            ),
            file("templates/NOTES.txt", "hello"),
        ])
        .unwrap();
        let rendered = render(&chart, &Values::new(), &Options::default()).unwrap();
        let contents = Contents {
            name: "web",
            namespace: "default",
            revision: 3,
            chart: &chart,
            config: &Values::new(),
            rendered: &rendered,
        };
        Release::new(
            &contents,
            Status::PendingInstall,
            "Initial install underway",
            "2026-01-01T00:00:00Z",
            None,
        )
    }

    #[test]
    fn release_survives_its_secret() {
        let mut release = release();
        let secret = release.secret();
        assert_eq!(secret["metadata"]["name"], "sh.helm.release.v1.web.v3");
        assert_eq!(secret["metadata"]["labels"]["status"], "pending-install");
        assert_eq!(
            secret,
            release.secret(),
            "the same release makes the same Secret"
        );
        assert_eq!(Release::from_secret(&secret).unwrap(), release);
        release.set_status(Status::Deployed, "Install complete");
        assert_eq!(release.secret()["metadata"]["labels"]["status"], "deployed");
        assert_eq!((release.notes(), release.chart_name()), ("hello", "web"));
        let hook = release.hooks().next().unwrap();
        assert_eq!((hook.name(), hook.weight(), hook.phase()), ("b", 5, ""));
    }

    #[test]
    fn phase_of_hook_is_recorded_with_its_times() {
        let mut release = release();
        release.set_hook_phase("web/templates/b.yaml", "b", "Running", "1");
        release.set_hook_phase("web/templates/b.yaml", "b", "Succeeded", "2");
        let hook = release.hooks().next().unwrap();
        assert_eq!(
            hook.0["last_run"],
            json!({"started_at": "1", "completed_at": "2", "phase": "Succeeded"})
        );
    }

    #[test]
    fn broken_secret_is_an_error_with_its_name() {
        let error = |data: Value| {
            let secret = json!({"metadata": {"name": "sh.helm.release.v1.a.v1"}, "data": data});
            Release::from_secret(&secret).unwrap_err().to_string()
        };
        assert_eq!(
            error(json!({})),
            "cannot decode release sh.helm.release.v1.a.v1: the Secret has no key release"
        );
        for broken in ["!", "IQ==", &STANDARD.encode(STANDARD.encode("[]"))] {
            assert!(error(json!({"release": broken})).starts_with("cannot decode release"));
        }
    }
}
