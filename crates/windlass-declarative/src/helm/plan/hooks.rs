//! The hooks of a revision, and how far they are.

use std::sync::Arc;

use serde_json::{Value, json};

use super::PlanError;
use crate::helm::release::{Release, StoredHook};
use crate::helm::stages::objects_of;
use crate::{Method, Ready, Wanted};

/// The revision that a hook's object was made for.
const REVISION: &str = "core.windlass.dev/release-revision";

/// How far a hook is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Its object is not there.
    New,
    Running,
    Succeeded,
    Failed(String),
}

/// Looks at the hooks of a pending revision and records how far they are.
pub(super) struct Hooks<'a> {
    release: &'a mut Release,
    live: &'a dyn Fn(&Value) -> Option<Arc<Value>>,
    now: &'a str,
    /// Whether something was recorded.
    pub(super) changed: bool,
    /// Why one failed.
    pub(super) failure: Option<String>,
}

impl<'a> Hooks<'a> {
    pub(super) fn new(
        release: &'a mut Release,
        live: &'a dyn Fn(&Value) -> Option<Arc<Value>>,
        now: &'a str,
    ) -> Self {
        Self {
            release,
            live,
            now,
            changed: false,
            failure: None,
        }
    }

    /// The stages of an event that are still to be done, each with one hook; and those that are done
    /// and stay.
    pub(super) fn stages(&mut self, event: &str) -> Result<Vec<Vec<Wanted>>, PlanError> {
        let mut stages = Vec::new();
        for hook in in_order(self.release, event) {
            let mut wanted = Vec::new();
            let mut found = Vec::new();
            for object in objects(&hook, self.release)? {
                let live = (self.live)(&object);
                found.push(state(live.as_deref(), self.release.revision()));
                if hook.phase != "Succeeded" || (live.is_some() && hook.stays) {
                    wanted.push(wanted_of(object));
                }
            }
            if hook.phase != "Succeeded" {
                self.record(&hook, &found);
            }
            if !wanted.is_empty() {
                stages.push(wanted);
            }
        }
        Ok(stages)
    }

    /// The stages of an event that are still to be done.
    pub(super) fn open_stages(&mut self, event: &str) -> Result<Vec<Vec<Wanted>>, PlanError> {
        self.stages(event)?;
        let mut open = Vec::new();
        for hook in in_order(self.release, event) {
            if !matches!(hook.phase.as_str(), "Succeeded" | "Failed") {
                let objects = objects(&hook, self.release)?;
                open.push(objects.into_iter().map(wanted_of).collect());
            }
        }
        Ok(open)
    }

    fn record(&mut self, hook: &Hook, states: &[State]) {
        let failed = states.iter().find_map(|state| match state {
            State::Failed(why) => Some(why),
            _ => None,
        });
        let phase = if let Some(why) = failed {
            if self.failure.is_none() {
                self.failure = Some(format!("hook {} failed: {why}", hook.path));
            }
            "Failed"
        } else if states.iter().all(|state| *state == State::Succeeded) {
            "Succeeded"
        } else {
            return;
        };
        self.changed = true;
        self.release
            .set_hook_phase(&hook.path, &hook.name, phase, self.now);
    }
}

/// The hooks of the deployed revision that are there and stay.
pub(super) fn remaining(
    release: &Release,
    live: &dyn Fn(&Value) -> Option<Arc<Value>>,
) -> Result<Vec<Wanted>, PlanError> {
    let mut found = Vec::new();
    for hook in release.hooks().map(Hook::of).filter(|hook| hook.stays) {
        for object in objects(&hook, release)? {
            let is_ours = live(&object)
                .is_some_and(|live| live["metadata"]["annotations"][REVISION].is_string());
            if is_ours {
                found.push(wanted_of(object));
            }
        }
    }
    Ok(found)
}

/// What is needed of a hook while its release changes.
struct Hook {
    name: String,
    path: String,
    manifest: String,
    phase: String,
    /// Whether its object stays when it is done.
    stays: bool,
}

impl Hook {
    fn of(hook: StoredHook<'_>) -> Self {
        Self {
            name: hook.name().to_owned(),
            path: hook.path().to_owned(),
            manifest: hook.manifest().to_owned(),
            phase: hook.phase().to_owned(),
            stays: !hook
                .delete_policies()
                .any(|policy| policy == "hook-succeeded"),
        }
    }
}

/// The hooks of an event in the order in which they run.
fn in_order(release: &Release, event: &str) -> Vec<Hook> {
    let mut hooks: Vec<StoredHook<'_>> = release
        .hooks()
        .filter(|hook| hook.events().any(|one| one == event))
        .collect();
    hooks.sort_by_key(|hook| (hook.weight(), hook.name()));
    hooks.into_iter().map(Hook::of).collect()
}

/// The objects of a hook, marked with the revision: that of another revision is made again.
fn objects(hook: &Hook, release: &Release) -> Result<Vec<Value>, PlanError> {
    let found = objects_of(&hook.path, &hook.manifest)
        .map_err(|error| PlanError::Render(error.to_string()))?;
    let mark = |mut object: Value| {
        if !object["metadata"]["annotations"].is_object() {
            object["metadata"]["annotations"] = json!({});
        }
        object["metadata"]["annotations"][REVISION] = json!(release.revision().to_string());
        object
    };
    Ok(found.into_iter().map(|one| mark(one.object)).collect())
}

fn wanted_of(object: Value) -> Wanted {
    Wanted::new(object)
        .method(Method::Recreate)
        .ready(Ready::ByKind)
}

/// How far the object of a hook is. Jobs and pods are done when they succeeded, others when they
/// are there.
fn state(live: Option<&Value>, revision: u64) -> State {
    let Some(live) = live else {
        return State::New;
    };
    let is_ours = live["metadata"]["annotations"][REVISION] == *revision.to_string();
    if !is_ours || !live["metadata"]["deletionTimestamp"].is_null() {
        return State::New;
    }
    let group = live["apiVersion"].as_str().unwrap_or_default();
    match (group, live["kind"].as_str().unwrap_or_default()) {
        (group, "Job") if group.starts_with("batch/") => job(live),
        ("v1", "Pod") => match live["status"]["phase"].as_str() {
            Some("Succeeded") => State::Succeeded,
            Some("Failed") => State::Failed(message(&live["status"])),
            _ => State::Running,
        },
        _ => State::Succeeded,
    }
}

fn job(live: &Value) -> State {
    let conditions = live["status"]["conditions"].as_array();
    for condition in conditions.into_iter().flatten() {
        if condition["status"] != "True" {
            continue;
        }
        if condition["type"] == "Complete" {
            return State::Succeeded;
        }
        if condition["type"] == "Failed" {
            return State::Failed(message(condition));
        }
    }
    State::Running
}

fn message(of: &Value) -> String {
    let text = |name: &str| of[name].as_str().filter(|text| !text.is_empty());
    text("message")
        .or_else(|| text("reason"))
        .unwrap_or("no reason given")
        .to_owned()
}
