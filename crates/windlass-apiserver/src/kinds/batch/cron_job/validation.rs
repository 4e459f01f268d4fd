//! `CronJob`s: when, and what.

use serde_json::Value;

use super::schedule;
use crate::kinds::batch::job::validation as job;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::internal;

/// So that the names of its Jobs stay labels.
const MAX_NAME: usize = 52;

pub(crate) fn check_name(cron: &Value, causes: &mut Causes) {
    let at = At::root(cron, "");
    let metadata = at.child("metadata");
    if metadata.text("name").len() > MAX_NAME {
        let why = format!("must be no more than {MAX_NAME} characters");
        causes.push(metadata.child("name").invalid(&why));
    }
}

/// `old` is what it was, for an update.
pub(crate) fn check(new: &Value, old: Option<&Value>, causes: &mut Causes) {
    let spec = At::root(&new["spec"], "spec");
    when(&spec, old, causes);
    spec.child("startingDeadlineSeconds").nonnegative(causes);
    let zone = spec.child("timeZone");
    if old.is_none_or(|old| &old["spec"]["timeZone"] != zone.value) {
        time_zone(&zone, causes);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    spec.child("concurrencyPolicy").one_of(&policies, causes);
    let template = spec.child("jobTemplate");
    let made = template.child("spec");
    job::check_spec(&made, causes);
    if let Some(selector) = made.get("selector") {
        let shown = internal::show(selector.value, "v1.LabelSelector");
        causes.push(selector.invalid_shown(&shown, "`selector` will be auto-generated"));
    }
    if made.flag("manualSelector") {
        causes.push(
            made.child("manualSelector")
                .not_supported(&["nil", "false"]),
        );
    }
    nonnegative(
        &spec,
        &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
        causes,
    );
}

fn when(spec: &At<'_, '_>, old: Option<&Value>, causes: &mut Causes) {
    let at = spec.child("schedule");
    let text = spec.text("schedule");
    if text.is_empty() {
        causes.push(at.required(""));
        return;
    }
    if let Err(why) = schedule::parse(text) {
        causes.push(at.invalid(&why.to_string()));
    }
    let before = old
        .and_then(|old| old["spec"]["schedule"].as_str())
        .unwrap_or_default();
    let (tolerated, named) = (before.contains("TZ"), text.contains("TZ"));
    if tolerated && named && spec.has("timeZone") {
        causes.push(at.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
    } else if !tolerated && named {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.push(at.invalid(why));
    }
}

fn time_zone(at: &At<'_, '_>, causes: &mut Causes) {
    let Some(name) = at.value.as_str() else {
        return;
    };
    if name.is_empty() {
        causes.push(at.invalid("timeZone must be nil or non-empty string"));
        return;
    }
    let known = |part: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.chars().all(allowed)
    };
    let unknown = format!("unknown time zone {name}");
    if !name.split('/').all(known) {
        causes.push(at.invalid(&unknown));
        return;
    }
    if name.eq_ignore_ascii_case("Local") {
        let why =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.push(at.invalid(why));
    }
    if !schedule::is_time_zone(name) {
        causes.push(at.invalid(&unknown));
    }
}
