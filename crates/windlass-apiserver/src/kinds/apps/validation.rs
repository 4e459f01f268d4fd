//! Deployments, `ReplicaSet`s, `ReplicationController`s, `StatefulSet`s, `DaemonSet`s, their revisions,
//! and templates that stand alone.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kinds::core::pod::validation as pod;
use crate::names;
use crate::validation::at::{At, Causes, nonnegative};
use crate::validation::{amount, internal, label, template};

const STATEFUL_SET: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// A selector that must be there and say something. Whether the template can be held against it.
fn selector(spec: &At<'_, '_>, kind: &str, unusable: &str, causes: &mut Causes) -> bool {
    let at = spec.child("selector");
    if at.value.is_null() {
        causes.push(at.required(""));
        return true;
    }
    label::selector(&at, causes);
    let shown = || internal::show(at.value, "v1.LabelSelector");
    if label::is_empty(at.value) {
        let why = format!("empty selector is invalid for {kind}");
        causes.push(at.invalid_shown(&shown(), &why));
    }
    if label::is_usable(at.value) {
        return true;
    }
    causes.push(at.invalid_shown(&shown(), unusable));
    false
}

/// The template of what keeps replicas running.
fn replicated(spec: &At<'_, '_>, kind: &str, causes: &mut Causes) {
    let at = spec.child("template");
    if !label::is_empty(&spec.value["selector"]) || spec.value["selector"].is_null() {
        template::selected(&at, &spec.value["selector"], causes);
    }
    template::check(&at, causes);
    template::always_restarting(&at, kind, causes);
}

pub(crate) fn deployment(spec: &At<'_, '_>, causes: &mut Causes) {
    spec.child("replicas").nonnegative(causes);
    if selector(spec, "deployment", "invalid label selector", causes) {
        replicated(spec, "ReplicaSet", causes);
    }
    deployment_strategy(&spec.child("strategy"), causes);
    nonnegative(
        spec,
        &[
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
        ],
        causes,
    );
    let deadline = spec.child("progressDeadlineSeconds");
    let ready = spec.int("minReadySeconds").unwrap_or_default();
    if deadline
        .value
        .as_i64()
        .is_some_and(|deadline| deadline <= ready)
    {
        causes.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

fn deployment_strategy(at: &At<'_, '_>, causes: &mut Causes) {
    let rolling = at.child("rollingUpdate");
    match at.text("type") {
        "Recreate" => {
            if at.has("rollingUpdate") {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                causes.push(rolling.forbidden(why));
            }
        }
        "RollingUpdate" => {
            let (fewer, more) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
            amount::check(&fewer, causes);
            amount::check(&more, causes);
            if amount::of(fewer.value) == 0 && amount::of(more.value) == 0 {
                causes.push(fewer.invalid("may not be 0 when `maxSurge` is 0"));
            }
            amount::at_most_all(&fewer, causes);
        }
        _ => not_a_strategy(
            at,
            "apps.DeploymentStrategy",
            &["Recreate", "RollingUpdate"],
            causes,
        ),
    }
}

fn not_a_strategy(at: &At<'_, '_>, ty: &str, allowed: &[&str], causes: &mut Causes) {
    let mut cause = at.not_supported(allowed);
    cause.message = cause
        .message
        .replacen(&at.value.to_string(), &internal::show(at.value, ty), 1);
    causes.push(cause);
}

pub(crate) fn replica_set(spec: &At<'_, '_>, causes: &mut Causes) {
    nonnegative(spec, &["replicas", "minReadySeconds"], causes);
    if selector(spec, "deployment", "invalid label selector", causes) {
        replicated(spec, "ReplicaSet", causes);
    }
}

pub(crate) fn replication_controller(spec: &At<'_, '_>, causes: &mut Causes) {
    spec.child("minReadySeconds").nonnegative(causes);
    let chosen = spec
        .map("selector")
        .is_some_and(|labels| !labels.is_empty());
    if !chosen {
        causes.push(spec.child("selector").required(""));
    }
    spec.child("replicas").nonnegative(causes);
    let Some(at) = spec.get("template") else {
        causes.push(spec.child("template").required(""));
        return;
    };
    if chosen {
        let selector = json!({"matchLabels": spec.value["selector"]});
        template::selected(&at, &selector, causes);
    }
    template::check(&at, causes);
    template::always_restarting(&at, "ReplicationController", causes);
}

pub(crate) fn daemon_set(spec: &At<'_, '_>, causes: &mut Causes) {
    let (chooses, at) = (spec.child("selector"), spec.child("template"));
    label::selector(&chooses, causes);
    let empty = label::is_empty(chooses.value) && !chooses.value.is_null();
    if label::is_usable(chooses.value) && !empty {
        template::selected(&at, chooses.value, causes);
    }
    if empty {
        causes.push(chooses.invalid("empty selector is invalid for daemonset"));
    }
    template::check(&at, causes);
    template::always_restarting(&at, "DaemonSet", causes);
    spec.child("minReadySeconds").nonnegative(causes);
    let strategy = spec.child("updateStrategy");
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => rolling_daemon_set(&strategy.child("rollingUpdate"), causes),
        _ => not_a_strategy(
            &strategy,
            "apps.DaemonSetUpdateStrategy",
            &["RollingUpdate", "OnDelete"],
            causes,
        ),
    }
    spec.child("revisionHistoryLimit").nonnegative(causes);
}

fn rolling_daemon_set(at: &At<'_, '_>, causes: &mut Causes) {
    let (fewer, more) = (at.child("maxUnavailable"), at.child("maxSurge"));
    for one in [&fewer, &more] {
        amount::check(one, causes);
    }
    for one in [&fewer, &more] {
        amount::at_most_all(one, causes);
    }
    match (amount::of(fewer.value) != 0, amount::of(more.value) != 0) {
        (true, true) => causes.push(more.invalid("may not be set when maxUnavailable is non-zero")),
        (false, false) => causes.push(fewer.required("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}

/// `is_new` tells whether what may not change anyway is looked at.
pub(crate) fn stateful_set(spec: &At<'_, '_>, is_new: bool, causes: &mut Causes) {
    let management = spec.child("podManagementPolicy");
    match spec.text("podManagementPolicy") {
        "" => causes.push(management.required("")),
        "OrderedReady" | "Parallel" => {}
        _ => causes.push(management.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    stateful_set_strategy(&spec.child("updateStrategy"), causes);
    let retention = spec.child("persistentVolumeClaimRetentionPolicy");
    for when in ["whenDeleted", "whenScaled"] {
        retention
            .child(when)
            .one_of_if_set(&["Retain", "Delete"], causes);
    }
    if is_new {
        for claim in spec.items("volumeClaimTemplates") {
            pod::check_claim_spec(&claim.child("spec"), causes);
        }
    }
    nonnegative(spec, &["replicas", "minReadySeconds"], causes);
    let ordinals = spec.child("ordinals");
    ordinals.child("start").nonnegative(causes);
    let service = spec.text("serviceName");
    if is_new && !service.is_empty() {
        spec.child("serviceName")
            .complain(names::label_errors(service), causes);
    }
    if selector(spec, "statefulset", "", causes) {
        let made = with_claims(spec.value);
        let path = format!("{spec}.template");
        let at = At::root(&made, &path);
        if !label::is_empty(&spec.value["selector"]) || spec.value["selector"].is_null() {
            template::selected(&at, &spec.value["selector"], causes);
        }
        template::check(&at, causes);
        let metadata = at.child("metadata");
        let here = At::root(metadata.value, &path);
        label::labels(&here.child("labels"), causes);
        template::annotations(&here.child("annotations"), causes);
    }
    template::always_restarting(&spec.child("template"), "StatefulSet", causes);
}

/// The template as its pods will have it: with a volume for each claim, and names of their own.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let names: Vec<&Value> = spec["volumeClaimTemplates"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|claim| &claim["metadata"]["name"])
        .collect();
    if let Some(pod) = template["spec"].as_object_mut() {
        pod.remove("hostname");
        pod.remove("subdomain");
        let own = pod
            .get("volumes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let claimed = names
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        let known: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
        let own = own
            .into_iter()
            .filter(|volume| !known.contains(&volume["name"].to_string()));
        pod.insert("volumes".into(), claimed.chain(own).collect());
    }
    template
}

fn stateful_set_strategy(at: &At<'_, '_>, causes: &mut Causes) {
    let rolling = at.child("rollingUpdate");
    match at.text("type") {
        "" => causes.push(at.required("")),
        "OnDelete" => {
            if at.has("rollingUpdate") {
                let shown = internal::show(rolling.value, "apps.RollingUpdateStatefulSetStrategy");
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                causes.push(rolling.invalid_shown(&shown, why));
            }
        }
        "RollingUpdate" => rolling.child("partition").nonnegative(causes),
        _ => {
            let shown = internal::show(at.value, "apps.StatefulSetUpdateStrategy");
            causes.push(at.invalid_shown(&shown, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

/// Of a `StatefulSet` only some fields may change.
pub(crate) fn stateful_set_update(new: &Value, old: &Value, causes: &mut Causes) {
    let rest = |spec: &Value| {
        let mut spec = spec.as_object().cloned().unwrap_or_default();
        spec.retain(|field, _| !STATEFUL_SET.contains(&field.as_str()));
        spec
    };
    if rest(&new["spec"]) != rest(&old["spec"]) {
        causes.push(At::root(&new["spec"], "spec").forbidden(
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ));
    }
}

/// What a controller knew at some time; `is_new` tells whether its data are looked at.
pub(crate) fn revision(revision: &Value, is_new: bool, causes: &mut Causes) {
    let at = At::root(revision, "");
    at.child("revision").nonnegative(causes);
    let data = at.child("data");
    if is_new && !data.value.is_object() {
        let why = if data.value.is_null() {
            "data is mandatory"
        } else {
            "data must be a valid JSON object"
        };
        causes.push(data.required(why));
    }
}

/// Numbers of replicas in a status: which there are, and which are part of which.
pub(crate) fn replica_status(
    status: &At<'_, '_>,
    of_all: &[&str],
    ready: &str,
    causes: &mut Causes,
) {
    let number = |name: &str| status.int(name).unwrap_or_default();
    for name in of_all {
        if number(name) > number("replicas") {
            causes.push(
                status
                    .child(name)
                    .invalid_value(number(name), "cannot be greater than status.replicas"),
            );
        }
    }
    if number("availableReplicas") > number("readyReplicas") {
        causes.push(
            status
                .child("availableReplicas")
                .invalid(&format!("cannot be greater than {ready}")),
        );
    }
}

/// A count of collisions only grows.
pub(crate) fn collisions(status: &At<'_, '_>, old: &Value, causes: &mut Causes) {
    let before = old["status"]["collisionCount"].as_i64();
    let now = status.int("collisionCount");
    if before.is_some_and(|before| now.is_none_or(|now| now < before)) {
        let now = now.unwrap_or_default();
        causes.push(
            status
                .child("collisionCount")
                .invalid_value(now, "cannot be decremented"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn deployment_whose_template_does_not_fit_its_selector_is_refused() {
        let spec = json!({
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "b"}}, "spec": {
                "restartPolicy": "Always", "dnsPolicy": "Default",
                "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}],
            }},
        });
        let mut causes = Vec::new();
        deployment(&At::root(&spec, "spec"), &mut causes);
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(causes[0].field, "spec.template.metadata.labels");
    }
}
