//! Server-side apply and the bookkeeping of field ownership.
//!
//! Every write is made by a manager. `metadata.managedFields` records, per manager, operation,
//! API version and subresource, which fields it set. A plain write takes what it changed away from
//! everybody else. An apply states a whole intent: what others own and it would change is a
//! conflict (unless forced), and what it stated last time and no longer states is removed, unless
//! somebody else owns it too.

mod check;
mod fieldset;
mod last_applied;
mod managers;
mod path;
mod typed;

pub(crate) use check::{check, is_typed};
pub(crate) use managers::{Managers, Writer, equal_but_for_times};

use std::ops::ControlFlow;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::registry::types::Type;
use crate::status::ApiError;
use fieldset::{FieldSet, show};
use managers::Manager;
pub(crate) use path::PathElement;

/// Fields that belong to the server, whoever sends them.
const SERVER_OWNED: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

static SERVER_OWNED_PATHS: LazyLock<Vec<Vec<PathElement>>> =
    LazyLock::new(|| SERVER_OWNED.iter().map(|path| fields_path(path)).collect());

fn strip_server_owned(mut set: FieldSet) -> FieldSet {
    for path in SERVER_OWNED_PATHS.iter() {
        set.remove(path);
    }
    set
}

/// A path of plain fields.
pub(crate) fn fields_path(path: &[&str]) -> Vec<PathElement> {
    path.iter()
        .map(|part| PathElement::Field((*part).to_owned()))
        .collect()
}

/// Records a plain write (create, update, patch) that turned `old` into `new`. What it changed in
/// `ignored` fields is not going to be stored, and counts for nothing.
pub(crate) fn record_update(
    old: &Value,
    new: &Value,
    ty: &Type,
    mut managers: Managers,
    writer: &Writer<'_>,
    ignored: &[&[&str]],
) -> Managers {
    let mut difference = typed::compare(old, new, ty);
    for path in ignored {
        let path = fields_path(path);
        for set in [
            &mut difference.added,
            &mut difference.modified,
            &mut difference.removed,
        ] {
            set.remove_below(&path);
        }
    }
    let (written, removed) = difference.into_written_and_removed();
    managers.take_from_all(&written, &removed);
    let taken = strip_server_owned(written);
    if !taken.is_empty() {
        managers.give(Manager::updating(writer), taken, writer.now);
    }
    managers.cap_updates();
    managers
}

/// The outcome of an apply.
pub(crate) struct Applied {
    pub(crate) object: Value,
    pub(crate) managers: Managers,
}

/// Applies `config` on `live` (an empty object when it does not exist yet).
pub(crate) fn apply(
    live: &Value,
    config: &Value,
    ty: &Type,
    mut managers: Managers,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Applied, ApiError> {
    let manager = Manager::applying(writer);
    let claimed = strip_server_owned(typed::fields_of(config, ty));
    let last = managers.replace(&manager, claimed, writer.api_version);
    let merged = typed::merge(live, config, ty);
    let merged = match &last {
        Some(last) if !last.is_empty() => prune(&merged, last, &managers, ty),
        _ => merged,
    };
    let difference = typed::compare(live, &merged, ty);
    let changes = !difference.is_empty();
    let (written, removed) = difference.into_written_and_removed();
    if !force {
        let conflicts = managers.conflicts(&manager, &written);
        if !conflicts.is_empty() && !is_from_client_side(&conflicts, live, ty, writer) {
            return Err(conflict_error(&conflicts));
        }
    }
    managers.take_from_others(&manager, &written, &removed);
    // Whose intent changes nothing is recorded without a time.
    if changes && let Some(now) = writer.now {
        managers.set_time(&manager, now);
    }
    let mut object = merged;
    if writer.manager == last_applied::KUBECTL {
        last_applied::keep_in_step(&mut object, config);
    }
    Ok(Applied { object, managers })
}

/// Takes away what the manager stated last time and nobody owns any more, itself included. Three
/// steps, as Kubernetes makes them: all that was stated goes, what somebody owns comes back, and of
/// the rest only what was stated stays away.
fn prune(merged: &Value, last: &FieldSet, managers: &Managers, ty: &Type) -> Value {
    let named = |set: &FieldSet| typed::with_named_parents(set, ty);
    let without = |set: &FieldSet| typed::without(merged, set, ty).unwrap_or_else(|| json!({}));
    let fields = |value: &Value| named(&typed::fields_of(value, ty));
    let (last, all) = (named(last), fields(merged));
    let owned = managers.sets().cloned();
    let owned = owned.fold(FieldSet::default(), FieldSet::union);
    let kept = fields(&without(&last)).union(named(&owned));
    let kept = fields(&without(&all.difference(&kept)));
    without(&all.difference(&kept).intersection(&last))
}

/// Whether all that is in the way is what `kubectl` itself applied from the client's side.
fn is_from_client_side(
    conflicts: &[(Manager, FieldSet)],
    live: &Value,
    ty: &Type,
    writer: &Writer<'_>,
) -> bool {
    if writer.manager != last_applied::KUBECTL {
        return false;
    }
    let own = last_applied::still_as_applied(live, ty);
    conflicts
        .iter()
        .all(|(_, fields)| fields.difference(&own).is_empty())
}

/// How much text of conflicts is shown. A path is as long as the client makes it, and there may be
/// as many.
const MAX_CONFLICTS_SHOWN: usize = 1024 * 1024;

fn conflict_error(conflicts: &[(Manager, FieldSet)]) -> ApiError {
    let mut flat: Vec<(String, String)> = Vec::new();
    let mut length = 0;
    for (manager, set) in conflicts {
        let _ = set.visit(&mut |path| {
            if length > MAX_CONFLICTS_SHOWN {
                return ControlFlow::Break(());
            }
            let shown = (manager.shown(), show(path));
            length += shown.0.len() + shown.1.len();
            flat.push(shown);
            ControlFlow::Continue(())
        });
    }
    let message = match flat.as_slice() {
        [(manager, path)] => {
            format!("Apply failed with 1 conflict: conflict with {manager}: {path}")
        }
        many => {
            let mut lines = Vec::new();
            let mut last = None;
            for (manager, path) in many {
                if last != Some(manager) {
                    lines.push(format!("conflicts with {manager}:"));
                    last = Some(manager);
                }
                lines.push(format!("- {path}"));
            }
            format!(
                "Apply failed with {} conflicts: {}",
                many.len(),
                lines.join("\n")
            )
        }
    };
    let mut error = ApiError::new(http::StatusCode::CONFLICT, "Conflict", message);
    error.set_causes(
        flat.into_iter()
            .map(|(manager, path)| {
                json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path})
            })
            .collect(),
    );
    error
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
