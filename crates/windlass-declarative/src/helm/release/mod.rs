//! Releases as Helm stores them.
//!
//! A revision of a release is a Secret named `sh.helm.release.v1.NAME.vREVISION` whose data is a
//! JSON document, compressed and in base64. What Helm wrote and this module does not know stays in
//! the document, so that a release may be worked on by both.

mod hooks;
mod secret;
mod status;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use windlass_charts::{Chart, Rendered, Values};

pub use hooks::StoredHook;
pub use secret::{DecodeError, SECRET_TYPE, secret_name};
pub use status::Status;

use super::stored_chart;
use hooks::stored_hook;

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
}
