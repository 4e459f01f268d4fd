//! Jobs, and the templates of Jobs in `CronJob`s.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::indexes;
use crate::names;
use crate::status::field;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::{internal, label, template};

const MAX_PARALLELISM: i64 = 100_000;
const MAX_FAILED_INDEXES: i64 = 100_000;
/// From how many completions on the limits are lower.
const MANY_COMPLETIONS: i64 = 100_000;
const LIMIT_OF_MANY: i64 = 10_000;
const MAX_RULES: usize = 20;
const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];

/// A Job, besides its metadata.
pub(crate) fn check(job: &Value, causes: &mut Causes) {
    let at = At::root(job, "");
    let spec = at.child("spec");
    generated_selector(&at, causes);
    check_spec(&spec, causes);
    selected(&spec, causes);
    let completions = spec.int("completions").unwrap_or_default();
    if spec.text("completionMode") == "Indexed" && completions > 0 {
        let metadata = at.child("metadata");
        let name = metadata.text("name");
        let last = format!("{name}-{}", completions - 1);
        if !names::label_errors(&last).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {last}");
            causes.push(metadata.child("name").invalid_text(&why));
        }
    }
}

/// The selector must be there and fit the template.
fn selected(spec: &At<'_, '_>, causes: &mut Causes) {
    let selector = spec.child("selector");
    if selector.value.is_null() {
        causes.push(selector.required(""));
    } else {
        label::selector(&selector, causes);
    }
    if label::is_usable(selector.value) {
        template::selected(&spec.child("template"), selector.value, causes);
    }
}

/// A selector that the server made is the one it makes.
fn generated_selector(job: &At<'_, '_>, causes: &mut Causes) {
    let (metadata, spec) = (job.child("metadata"), job.child("spec"));
    let selector = spec.child("selector");
    if spec.flag("manualSelector") || selector.value.is_null() {
        return;
    }
    let (uid, name) = (metadata.text("uid"), metadata.text("name"));
    let wanted = json!({
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    });
    let labels = &spec.value["template"]["metadata"]["labels"];
    for key in [
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    ] {
        let path = format!("spec.template.metadata.labels[{key}]");
        let why = format!("must be '{}'", wanted[key].as_str().unwrap_or_default());
        match labels.get(key) {
            None => causes.push(field::required(path, &why)),
            Some(found) if *found != wanted[key] => causes.push(field::invalid(path, labels, &why)),
            Some(_) => {}
        }
    }
    if label::is_usable(selector.value) && !label::selects(selector.value, &wanted) {
        let shown = internal::show(selector.value, "v1.LabelSelector");
        causes.push(selector.invalid_shown(&shown, "`selector` not auto-generated"));
    }
}

/// The spec of a Job, made or to be made.
pub(crate) fn check_spec(spec: &At<'_, '_>, causes: &mut Causes) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    nonnegative(spec, &numbers, causes);
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        let why = "when maxFailedIndexes is specified";
        causes.push(spec.child("backoffLimitPerIndex").required(why));
    }
    if let Some(manager) = spec.get("managedBy") {
        managed_by(&manager, causes);
    }
    let mode = spec.child("completionMode");
    mode.one_of_if_set(&["NonIndexed", "Indexed"], causes);
    if mode.value == "Indexed" {
        indexed(spec, causes);
    }
    if mode.value.is_null() || mode.value == "NonIndexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(found) = spec.get(field) {
                causes.push(found.invalid("requires indexed completion mode"));
            }
        }
    }
    if let Some(policy) = spec.get("podFailurePolicy") {
        failure_policy(spec, &policy, causes);
    }
    if let Some(policy) = spec.get("successPolicy") {
        if mode.value == "Indexed" {
            success_policy(spec, &policy, causes);
        } else {
            let shown = internal::show(policy.value, "batch.SuccessPolicy");
            causes.push(policy.invalid_shown(&shown, "requires indexed completion mode"));
        }
    }
    let allowed: &[&str] = if spec.has("podFailurePolicy") {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    spec.child("podReplacementPolicy")
        .one_of_if_set(allowed, causes);
    let at = spec.child("template");
    template::check(&at, causes);
    restart_policy(spec, &at.child("spec").child("restartPolicy"), causes);
}

fn restart_policy(spec: &At<'_, '_>, at: &At<'_, '_>, causes: &mut Causes) {
    match at.value.as_str().unwrap_or_default() {
        "" | "Always" => causes.push(at.required("valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if spec.has("podFailurePolicy") => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            causes.push(at.invalid(why));
        }
        "Never" | "OnFailure" => {}
        _ => causes.push(at.not_supported(&["OnFailure", "Never"])),
    }
}

fn managed_by(at: &At<'_, '_>, causes: &mut Causes) {
    let text = at.value.as_str().unwrap_or_default();
    match text.split_once('/') {
        _ if text.is_empty() => causes.push(at.required("")),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            for why in names::subdomain_errors(domain) {
                causes.push(at.invalid_value(domain, &why));
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            causes.push(at.invalid(why));
        }
    }
    if text.len() > 63 {
        causes.push(field::too_long(at.to_string(), 63));
    }
}

fn indexed(spec: &At<'_, '_>, causes: &mut Causes) {
    let (completions, parallelism) = (spec.int("completions"), spec.int("parallelism"));
    let failed = spec.int("maxFailedIndexes");
    let (parallel, max_failed) = (spec.child("parallelism"), spec.child("maxFailedIndexes"));
    if completions.is_none() {
        causes.push(
            spec.child("completions")
                .required("when completion mode is Indexed"),
        );
    }
    if parallelism.is_some_and(|number| number > MAX_PARALLELISM) {
        let why = format!(
            "must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed"
        );
        causes.push(parallel.invalid(&why));
    }
    if completions.is_some_and(|all| failed.is_some_and(|failed| failed > all)) {
        causes.push(max_failed.invalid("must be less than or equal to completions"));
    }
    if failed.is_some_and(|failed| failed > MAX_FAILED_INDEXES) {
        let why = format!("must be less than or equal to {MAX_FAILED_INDEXES}");
        causes.push(max_failed.invalid(&why));
    }
    if completions.is_some_and(|all| all > MANY_COMPLETIONS) && spec.has("backoffLimitPerIndex") {
        if failed.is_none() {
            let why = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            causes.push(max_failed.required(&why));
        }
        let why = format!(
            "must be less than or equal to {LIMIT_OF_MANY} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
        );
        for (at, number) in [(&parallel, parallelism), (&max_failed, failed)] {
            if number.is_some_and(|number| number > LIMIT_OF_MANY) {
                causes.push(at.invalid(&why));
            }
        }
    }
}

fn failure_policy(spec: &At<'_, '_>, policy: &At<'_, '_>, causes: &mut Causes) {
    let rules = policy.list("rules");
    if rules.len() > MAX_RULES {
        let path = policy.child("rules").to_string();
        causes.push(field::too_many(path, rules.len(), MAX_RULES as u64));
    }
    let pod = &spec.value["template"]["spec"];
    let containers: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod[*list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    for rule in policy.items("rules") {
        let action = rule.child("action");
        match rule.text("action") {
            "" => causes.push(action.required(&format!("valid values: {}", go_list(ACTIONS)))),
            "FailIndex" => {
                if !spec.has("backoffLimitPerIndex") {
                    causes.push(action.invalid("requires the backoffLimitPerIndex to be set"));
                }
            }
            known if ACTIONS.contains(&known) => {}
            _ => causes.push(action.not_supported(ACTIONS)),
        }
        if let Some(codes) = rule.get("onExitCodes") {
            exit_codes(&codes, &containers, causes);
        }
        let conditions = rule.list("onPodConditions");
        if conditions.len() > MAX_RULES {
            let path = rule.child("onPodConditions").to_string();
            causes.push(field::too_many(path, conditions.len(), MAX_RULES as u64));
        }
        for pattern in rule.items("onPodConditions") {
            label::qualified(&pattern.child("type"), causes);
            let statuses = ["False", "True", "Unknown"];
            match pattern.text("status") {
                "" => {
                    let why = format!("valid values: {}", go_list(&statuses));
                    causes.push(pattern.child("status").required(&why));
                }
                status if statuses.contains(&status) => {}
                _ => causes.push(pattern.child("status").not_supported(&statuses)),
            }
        }
        let why = match (rule.has("onExitCodes"), !conditions.is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        causes.push(field::invalid_hidden(rule.to_string(), why));
    }
}

/// A list of texts as Go writes it.
fn go_list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    format!("[{}]", quoted.join(" "))
}

fn exit_codes(at: &At<'_, '_>, containers: &BTreeSet<&str>, causes: &mut Causes) {
    let operator = at.child("operator");
    match at.text("operator") {
        "" => {
            causes.push(operator.required(&format!("valid values: {}", go_list(&["In", "NotIn"]))));
        }
        "In" | "NotIn" => {}
        _ => causes.push(operator.not_supported(&["In", "NotIn"])),
    }
    if at.has("containerName") && !containers.contains(at.text("containerName")) {
        let why = "must be one of the container or initContainer names in the pod template";
        causes.push(at.child("containerName").invalid(why));
    }
    let values: Vec<i64> = at.list("values").iter().filter_map(Value::as_i64).collect();
    let told = at.child("values");
    if values.is_empty() {
        causes.push(told.invalid_value(json!([]), "at least one value is required"));
    } else if values.len() > 255 {
        causes.push(field::too_many(told.to_string(), values.len(), 255));
    }
    let mut seen = BTreeSet::new();
    for value in at.items("values") {
        let number = value.value.as_i64().unwrap_or_default();
        if at.text("operator") == "In" && number == 0 {
            causes.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(number) {
            causes.push(value.duplicate());
        }
    }
    if !values.is_sorted() {
        causes.push(told.invalid("must be ordered"));
    }
}

fn success_policy(spec: &At<'_, '_>, policy: &At<'_, '_>, causes: &mut Causes) {
    let rules = policy.list("rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        causes.push(policy.child("rules").required(why));
    }
    if rules.len() > MAX_RULES {
        let path = policy.child("rules").to_string();
        causes.push(field::too_many(path, rules.len(), MAX_RULES as u64));
    }
    let completions = spec.int("completions").unwrap_or_default();
    for rule in policy.items("rules") {
        let (chosen, count) = (rule.child("succeededIndexes"), rule.child("succeededCount"));
        if chosen.value.is_null() && count.value.is_null() {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            causes.push(rule.required(why));
        }
        let mut total = 0;
        if let Some(text) = chosen.value.as_str() {
            match indexes::count(text, completions) {
                Ok(found) => total = found,
                Err(why) => {
                    causes.push(chosen.invalid(&format!("error parsing succeededIndexes: {why}")));
                }
            }
        }
        if let Some(number) = count.value.as_i64() {
            count.nonnegative(causes);
            if number > completions {
                let why = format!(
                    "must be less than or equal to {completions} (the number of specified completions)"
                );
                causes.push(count.invalid(&why));
            }
            if !chosen.value.is_null() && number > total {
                let why = format!(
                    "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
                );
                causes.push(count.invalid(&why));
            }
        }
    }
}

/// What may not change of a Job.
pub(crate) fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
    let (spec, before) = (At::root(&new["spec"], "spec"), &old["spec"]);
    check_spec(&spec, causes);
    selected(&spec, causes);
    let completions = spec.child("completions");
    if spec.text("completionMode") == "Indexed" {
        let tandem = spec.int("completions") == spec.int("parallelism");
        if completions.value != &before["completions"] && !completions.value.is_null() && !tandem {
            let why = "can only be modified in tandem with spec.parallelism";
            causes.push(completions.invalid(why));
        }
    } else if completions.value != &before["completions"] {
        causes.push(completions.invalid("field is immutable"));
    }
    template::immutable_selector(&spec.child("selector"), &before["selector"], causes);
    template_update(&spec, old, causes);
    for (field, ty) in [
        ("completionMode", ""),
        ("podFailurePolicy", "batch.PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "batch.SuccessPolicy"),
    ] {
        let at = spec.child(field);
        if at.value != &before[field] {
            let shown = internal::show(at.value, ty);
            causes.push(at.invalid_shown(&shown, "field is immutable"));
        }
    }
}

/// The template stays, except that of a Job that waits: where its pods go and what they get may
/// change until it starts.
fn template_update(spec: &At<'_, '_>, old: &Value, causes: &mut Causes) {
    let at = spec.child("template");
    let mut before = old["spec"]["template"].clone();
    let suspended = old["spec"]["suspend"] == true;
    let unstarted = old["status"].get("startTime").is_none() || is_true(old, "Suspended");
    let mutable =
        suspended && unstarted && old["status"]["active"].as_i64().unwrap_or_default() == 0;
    if mutable {
        for field in ["annotations", "labels"] {
            copy(&mut before["metadata"], &at.value["metadata"], field);
        }
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            copy(&mut before["spec"], &at.value["spec"], field);
        }
        let now = &at.value["spec"]["affinity"];
        if !now.is_null() || !before["spec"]["affinity"].is_null() {
            let mut affinity = before["spec"]["affinity"].clone();
            copy(&mut affinity, now, "nodeAffinity");
            before["spec"]["affinity"] = affinity;
            if now.is_null() && before["spec"]["affinity"] == json!({}) {
                copy(&mut before["spec"], &Value::Null, "affinity");
            }
        }
        for list in ["containers", "initContainers"] {
            let containers = before["spec"].get_mut(list).and_then(Value::as_array_mut);
            for (index, container) in containers.into_iter().flatten().enumerate() {
                let now = &at.value["spec"][list][index];
                if now["name"] == container["name"] {
                    copy(container, now, "resources");
                }
            }
        }
        if at.value["spec"] != before["spec"] {
            let shown = internal::show(&at.value["spec"], "core.PodSpec");
            let path = "spec.template.spec".to_owned();
            causes.push(field::invalid_shown(path, &shown, "field is immutable"));
        }
    } else if at.value != &before {
        let shown = internal::show(at.value, "core.PodTemplateSpec");
        causes.push(at.invalid_shown(&shown, "field is immutable"));
    }
}

/// Whether a condition is there and true.
pub(crate) fn is_true(job: &Value, kind: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|one| one["type"] == kind && one["status"] == "True")
}

fn copy(to: &mut Value, from: &Value, field: &str) {
    if !to.is_object() {
        *to = json!({});
    }
    match from.get(field) {
        Some(value) => to[field] = value.clone(),
        None => {
            if let Some(map) = to.as_object_mut() {
                map.remove(field);
            }
        }
    }
}
