//! What a Job's controller may say of it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::indexes;
use crate::kinds::batch::job::validation::is_true;
use crate::status::field;
use crate::validation::at::{At, Causes, nonnegative};

pub(crate) fn check(new: &Value, old: &Value, causes: &mut Causes) {
    let status = At::root(&new["status"], "status");
    nonnegative(
        &status,
        &["active", "succeeded", "failed", "ready", "terminating"],
        causes,
    );
    uncounted(&status, causes);
    conditions(new, &status, causes);
    indexes_of(new, &status, causes);
    let active = status.int("active").unwrap_or_default();
    if status.int("ready").is_some_and(|ready| ready > active) {
        causes.push(
            status
                .child("ready")
                .invalid("cannot set more ready pods than active"),
        );
    }
    let conflict = [
        (
            "Failed",
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            "FailureTarget",
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
    ];
    for (other, why) in conflict {
        if is_true(new, "SuccessCriteriaMet") && is_true(new, other) {
            causes.push(hidden(&status, why));
        }
    }
    changes(new, old, &status, causes);
}

/// A complaint about the conditions as a whole, which are not shown.
fn hidden(status: &At<'_, '_>, why: &str) -> crate::status::Cause {
    field::invalid_hidden(status.child("conditions").to_string(), why)
}

fn uncounted(status: &At<'_, '_>, causes: &mut Causes) {
    let at = status.child("uncountedTerminatedPods");
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in at.items(list) {
            let text = uid.value.as_str().unwrap_or_default();
            if text.is_empty() {
                causes.push(uid.invalid("must not be empty"));
            } else if !seen.insert(text) {
                causes.push(uid.duplicate());
            }
        }
    }
}

fn conditions(job: &Value, status: &At<'_, '_>, causes: &mut Causes) {
    let (complete, failed) = (is_true(job, "Complete"), is_true(job, "Failed"));
    let target = is_true(job, "FailureTarget");
    if complete && failed {
        causes.push(hidden(
            status,
            "cannot set Complete=True and Failed=true conditions",
        ));
    }
    if complete && target {
        causes.push(hidden(
            status,
            "cannot set Complete=True and FailureTarget=true conditions",
        ));
    }
    let (start, end) = (status.child("startTime"), status.child("completionTime"));
    if !end.value.is_null() && !complete {
        let why = "cannot set completionTime when there is no Complete=True condition";
        causes.push(end.invalid(why));
    }
    if end.value.is_null() && complete {
        causes.push(end.required("completionTime is required for Complete jobs"));
    }
    let time = |at: &At<'_, '_>| {
        at.value
            .as_str()
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
    };
    if let (Some(start), Some(ended)) = (time(&start), time(&end))
        && ended < start
    {
        causes.push(end.invalid("must be equal to or after `startTime`"));
    }
    if failed && !target {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        causes.push(hidden(status, why));
    }
    if complete && !is_true(job, "SuccessCriteriaMet") {
        let why =
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        causes.push(hidden(status, why));
    }
    if !complete && !failed {
        return;
    }
    if status.int("active").is_some_and(|active| active > 0) {
        causes.push(
            status
                .child("active")
                .invalid("active>0 is invalid for finished job"),
        );
    }
    if start.value.is_null() {
        causes.push(start.required("startTime is required for finished job"));
    }
    let pods = status.child("uncountedTerminatedPods");
    if !pods.list("failed").is_empty() || !pods.list("succeeded").is_empty() {
        causes.push(pods.invalid("must be empty for finished job"));
    }
    if status.int("terminating").is_some_and(|pods| pods > 0) {
        causes.push(
            status
                .child("terminating")
                .invalid("terminating>0 is invalid for finished job"),
        );
    }
}

fn indexes_of(job: &Value, status: &At<'_, '_>, causes: &mut Causes) {
    let spec = &job["spec"];
    let completions = spec["completions"].as_i64();
    let (done, lost) = (
        status.child("completedIndexes"),
        status.child("failedIndexes"),
    );
    for (at, name) in [(&done, "completedIndexes"), (&lost, "failedIndexes")] {
        if let (Some(text), Some(completions)) = (at.value.as_str(), completions)
            && let Err(why) = indexes::count(text, completions)
        {
            causes.push(at.invalid(&format!("error parsing {name}: {why}")));
        }
    }
    let text = done.value.as_str().unwrap_or_default();
    if !text.is_empty() && spec["completionMode"] != "Indexed" {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        causes.push(done.invalid(why));
    }
    if !lost.value.is_null() && spec.get("backoffLimitPerIndex").is_none() {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        causes.push(lost.invalid(why));
    }
}

/// What is over stays over, and counts only grow.
fn changes(new: &Value, old: &Value, status: &At<'_, '_>, causes: &mut Causes) {
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, kind) && !is_true(new, kind) {
            causes.push(hidden(
                status,
                &format!("cannot disable the terminal {kind}=True condition"),
            ));
        }
    }
    for count in ["failed", "succeeded"] {
        let number = |job: &Value| job["status"][count].as_i64().unwrap_or_default();
        if number(new) < number(old) {
            let why = format!("cannot decrease the {count} counter");
            causes.push(status.child(count).invalid_value(number(new), &why));
        }
    }
    let (end, ended) = (
        status.child("completionTime"),
        &old["status"]["completionTime"],
    );
    if !end.value.is_null() && !ended.is_null() && end.value != ended {
        causes.push(end.invalid("field is immutable"));
    }
    let (start, started) = (status.child("startTime"), &old["status"]["startTime"]);
    if !started.is_null() && start.value != started && new["spec"]["suspend"] != true {
        causes.push(start.invalid("field is immutable for unsuspended job once set"));
    }
    if is_true(old, "SuccessCriteriaMet") && !is_true(new, "SuccessCriteriaMet") {
        causes.push(hidden(
            status,
            "cannot disable the SuccessCriteriaMet=True condition",
        ));
    }
    if is_true(old, "Complete")
        && !is_true(old, "SuccessCriteriaMet")
        && is_true(new, "SuccessCriteriaMet")
    {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        causes.push(hidden(status, why));
    }
}
