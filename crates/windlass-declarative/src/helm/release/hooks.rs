//! The hooks of a stored revision, and how far each is.

use serde_json::{Value, json};
use windlass_charts::{Hook, Rendered};

use super::Release;

/// A hook of a stored release.
#[derive(Clone, Copy, Debug)]
pub struct StoredHook<'a>(pub(super) &'a Value);

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

/// A hook that did not run yet.
pub(super) fn stored_hook(hook: &Hook) -> Value {
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

impl Release {
    /// Its hooks.
    pub fn hooks(&self) -> impl Iterator<Item = StoredHook<'_>> {
        let hooks = self.document.get("hooks").and_then(Value::as_array);
        hooks.into_iter().flatten().map(StoredHook)
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
