//! What to do for a release whose custom resource is being deleted. Only what is stored counts: the
//! chart may be gone or broken.

use std::sync::Arc;

use serde_json::Value;

use super::hooks::Hooks;
use super::objects::labelled;
use super::{PlanError, shown};
use crate::helm::release::{Release, Status as Stage};
use crate::helm::stages::{Operation, is_kept, objects_of_manifest};
use crate::{Ready, Wanted};

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removal {
    /// Revisions to be written first.
    pub before: Vec<Release>,
    /// The objects that stay for now, in stages.
    pub stages: Vec<Vec<Wanted>>,
    /// Whether nothing is left to be done once these stages are applied and all else is deleted.
    pub done: bool,
}

/// What to do for a release that is to be uninstalled. `are_gone` says whether its objects are.
pub fn removal(
    history: &[Release],
    live: &dyn Fn(&Value) -> Option<Arc<Value>>,
    now: jiff::Timestamp,
    are_gone: bool,
) -> Result<Removal, PlanError> {
    let now = shown(now);
    let Some(mut release) = history.last().cloned() else {
        return Ok(Removal {
            done: true,
            ..Removal::default()
        });
    };
    let mut removal = Removal::default();
    let mut changed = false;
    if release.status() != Stage::Uninstalling {
        release.set_status(
            Stage::Uninstalling,
            "Deletion in progress (or silently failed)",
        );
        // Hooks that ran for another event run again.
        release.forget_hook_phases();
        changed = true;
    }
    let is_pending = |stages: &[Vec<Wanted>]| stages.iter().flatten().next().is_some();
    let mut hooks = Hooks::new(&mut release, live, &now);
    let before = hooks.open_stages(Operation::Delete.before())?;
    if is_pending(&before) && hooks.failure.is_none() {
        changed |= hooks.changed;
        removal.stages = before;
        // Until they are done nothing is deleted.
        let objects = objects_of_manifest(release.manifest())
            .map_err(|error| PlanError::Render(error.to_string()))?;
        let objects = objects.into_iter().map(|one| {
            let stays = is_kept(&one.object);
            let object = labelled(
                one.object,
                release.name(),
                release.namespace(),
                release.chart_name(),
            );
            let wanted = Wanted::new(object).ready(Ready::Exists);
            // It must not get an owner that takes it along.
            if stays { wanted.keep() } else { wanted }
        });
        // What is gone already is not made again for the time that is left.
        removal
            .stages
            .push(objects.filter(|one| live(&one.object).is_some()).collect());
    } else if !are_gone {
        changed |= hooks.changed;
    } else {
        let after = hooks.open_stages(Operation::Delete.after())?;
        changed |= hooks.changed;
        // A hook that failed holds nothing up: there would be no way to get rid of the release.
        removal.done = !is_pending(&after) || hooks.failure.is_some();
        removal.stages = after;
    }
    if changed {
        removal.before.push(release);
    }
    Ok(removal)
}
