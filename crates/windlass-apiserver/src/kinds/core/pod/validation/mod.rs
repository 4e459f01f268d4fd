//! Pods, alone or as a template: what is wrong with them, and what may change.

mod affinity;
mod claim_template;
mod container;
mod dns;
mod env;
mod handler;
mod mount;
mod os;
mod projected;
mod resize;
mod resource_claim;
mod security;
mod spread;
mod status;
mod toleration;
mod update;
mod volume;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names;
use crate::validation::at::{At, Causes};
use crate::validation::label;
use crate::validation::resources;
use crate::validation::resources::Of;

pub(crate) use claim_template::check_spec as check_claim_spec;
pub(crate) use resize::check as check_resize;
pub(crate) use status::{check as check_status, check_conditions};
pub(crate) use toleration::{check as check_tolerations, check_effect};
pub(crate) use update::{check as check_update, check_ephemeral as check_ephemeral_update};

/// What a pod is checked as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Pod,
    Template,
}

/// What is wrong with a pod, besides its metadata.
pub(crate) fn check(pod: &Value, causes: &mut Causes) {
    let at = At::root(pod, "");
    let spec = at.child("spec");
    annotations(&at.child("metadata").child("annotations"), &spec, causes);
    check_spec(&spec, at.child("metadata").text("name"), Form::Pod, causes);
    if spec.text("serviceAccountName").is_empty() {
        for volume in spec.items("volumes") {
            let projected = volume.child("projected");
            for source in projected
                .items("sources")
                .filter(|source| source.has("serviceAccountToken"))
            {
                let why = "must not be specified when serviceAccountName is not set";
                causes.push(source.child("serviceAccountToken").forbidden(why));
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec.items(list) {
            container::image_padding(&container, causes);
        }
    }
}

/// What a new pod may not have yet.
pub(crate) fn check_new(pod: &Value, causes: &mut Causes) {
    let spec = At::root(&pod["spec"], "spec");
    if !spec.list("ephemeralContainers").is_empty() {
        causes.push(
            spec.child("ephemeralContainers")
                .forbidden("cannot be set on create"),
        );
    }
    if !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        causes.push(spec.child("nodeName").forbidden(why));
    }
}

/// Annotations that mean something.
pub(crate) fn annotations(at: &At<'_, '_>, spec: &At<'_, '_>, causes: &mut Causes) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let wrong = |key: &str, why: &str| {
        let path = format!("{at}[{key}]");
        crate::status::field::invalid(path, &at.value[key], why)
    };
    if at.has(MIRROR) && spec.text("nodeName").is_empty() {
        causes.push(wrong(
            MIRROR,
            "must set spec.nodeName if mirror pod annotation is set",
        ));
    }
    let cost = at.text(COST);
    let padded = cost.starts_with('+') || (cost.starts_with('0') && cost.len() > 1);
    if at.has(COST) && (cost.parse::<i32>().is_err() || padded) {
        causes.push(wrong(COST, "must be a 32bit integer"));
    }
}

/// What is wrong with the spec of a pod, or of a template.
pub(crate) fn check_spec(spec: &At<'_, '_>, pod_name: &str, form: Form, causes: &mut Causes) {
    let volumes = volume::check(spec, pod_name, causes);
    let claims: BTreeSet<&str> = spec
        .items("resourceClaims")
        .map(|claim| claim.text("name"))
        .filter(|name| !name.is_empty())
        .collect();
    resource_claim::check(spec, causes);
    let scope = container::Scope {
        volumes: &volumes,
        claims: &claims,
        restart_policy: spec.text("restartPolicy"),
        grace: spec.int("terminationGracePeriodSeconds"),
        host_users: spec.value.get("hostUsers") != Some(&Value::Bool(false)),
    };
    container::check(spec, &scope, causes);
    container::check_init(spec, &scope, causes);
    container::check_ephemeral(spec, &scope, causes);
    pod_resources(spec, &claims, causes);
    if spec.flag("hostNetwork") {
        host_ports(spec, form, causes);
    }
    spec.child("restartPolicy")
        .one_of(&["Always", "OnFailure", "Never"], causes);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    spec.child("dnsPolicy").one_of(&policies, causes);
    label::labels(&spec.child("nodeSelector"), causes);
    security::check_pod(spec, causes);
    affinity::check(&spec.child("affinity"), causes);
    dns::check(spec, causes);
    gates(spec, causes);
    spread::check(spec, causes);
    host_users(spec, causes);
    host_name(spec, causes);
    names_and_numbers(spec, causes);
    os::check(spec, causes);
    env::check_file_volumes(spec, causes);
}

/// What a pod as a whole asks for.
fn pod_resources(spec: &At<'_, '_>, claims: &BTreeSet<&str>, causes: &mut Causes) {
    let Some(at) = spec.get("resources") else {
        return;
    };
    if spec.value["os"]["name"] == "windows" {
        causes.push(at.forbidden("may not be set for a windows pod"));
        return;
    }
    if at.has("claims") {
        let why = "claims may not be set for Resources at pod-level";
        causes.push(at.child("claims").forbidden(why));
    }
    resources::requirements(&at, Of::Pod, claims, causes);
    for (name, request) in at.entries("requests") {
        let all = crate::kinds::core::pod::resources::requests(spec.value, name);
        if let (Some(all), Some(given)) = (all, resources::quantity(request.value))
            && all > given
        {
            let why =
                format!("must be greater than or equal to aggregate container requests of {all}");
            causes.push(request.invalid(&why));
        }
    }
    for (index, container) in spec.items("containers").enumerate() {
        let own = container.child("resources");
        for (name, limit) in own.entries("limits") {
            let most = resources::quantity(&at.value["limits"][name]);
            if let (Some(most), Some(given)) = (most, resources::quantity(limit.value))
                && given > most
            {
                let path = format!("{at}.containers[{index}][{name}].limits");
                let why = format!("must be less than or equal to pod limits of {most}");
                causes.push(crate::status::field::invalid(path, limit.value, &why));
            }
        }
    }
}

fn host_ports(spec: &At<'_, '_>, form: Form, causes: &mut Causes) {
    for container in spec.items("containers") {
        for port in container.items("ports") {
            let host = port.int("hostPort").unwrap_or_default();
            if (form == Form::Pod || host != 0) && Some(host) != port.int("containerPort") {
                let why = "must match `containerPort` when `hostNetwork` is true";
                causes.push(port.child("hostPort").invalid_value(host, why));
            }
        }
    }
}

fn gates(spec: &At<'_, '_>, causes: &mut Causes) {
    for gate in spec.items("readinessGates") {
        label::qualified(&gate.child("conditionType"), causes);
    }
    let mut seen = BTreeSet::new();
    for gate in spec.items("schedulingGates") {
        let name = gate.text("name");
        for why in names::qualified_errors(name) {
            causes.push(gate.invalid_value(name, &why));
        }
        if !seen.insert(name) {
            causes.push(gate.duplicate_value(name));
        }
    }
}

/// Users of its own and the host's namespaces do not go together.
fn host_users(spec: &At<'_, '_>, causes: &mut Causes) {
    if spec.value.get("hostUsers") != Some(&Value::Bool(false)) {
        return;
    }
    let why = "when `hostUsers` is false";
    for (field, told) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.flag(field) {
            causes.push(spec.child(told).forbidden(why));
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec
            .items(list)
            .filter(|one| !one.list("volumeDevices").is_empty())
        {
            causes.push(container.child("volumeDevices").forbidden(why));
        }
    }
}

fn host_name(spec: &At<'_, '_>, causes: &mut Causes) {
    let Some(name) = spec.get("hostnameOverride") else {
        return;
    };
    if spec.flag("setHostnameAsFQDN") {
        causes.push(name.forbidden("may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.flag("hostNetwork") {
        causes.push(name.forbidden("may not be specified when hostNetwork is true"));
    }
    let text = name.value.as_str().unwrap_or_default();
    if text.len() > 64 {
        causes.push(crate::status::field::too_long(name.to_string(), 64));
    }
    name.complain(names::subdomain_errors(text), causes);
}

fn names_and_numbers(spec: &At<'_, '_>, causes: &mut Causes) {
    let named = |field: &str, check: fn(&str) -> Vec<String>, causes: &mut Causes| {
        let name = spec.text(field);
        if !name.is_empty() {
            spec.child(field).complain(check(name), causes);
        }
    };
    named("serviceAccountName", names::subdomain_errors, causes);
    named("nodeName", names::subdomain_errors, causes);
    spec.child("activeDeadlineSeconds")
        .between(1, i64::from(i32::MAX), causes);
    named("hostname", names::label_errors, causes);
    named("subdomain", names::label_errors, causes);
    toleration::check(spec, "tolerations", causes);
    for alias in spec.items("hostAliases") {
        dns::address(&alias.child("ip"), causes);
        for host in alias.items("hostnames") {
            let name = host.value.as_str().unwrap_or_default();
            host.complain(names::subdomain_errors(name), causes);
        }
    }
    named("priorityClassName", names::subdomain_errors, causes);
    named("runtimeClassName", names::subdomain_errors, causes);
    if spec.has("preemptionPolicy") {
        spec.child("preemptionPolicy")
            .one_of(&["PreemptLowerPriority", "Never"], causes);
    }
    if spec.has("overhead") {
        // Told as the limits that they are checked as.
        let limits = serde_json::json!({"limits": spec.value["overhead"]});
        let path = format!("{spec}.overhead");
        resources::requirements(
            &At::root(&limits, &path),
            Of::Container,
            &BTreeSet::new(),
            causes,
        );
    }
}
