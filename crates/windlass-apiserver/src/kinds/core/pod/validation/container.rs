//! Containers: those that stay, those that come first, those that are added to look around.

use std::collections::BTreeSet;

use serde_json::Value;

use super::handler::Probe;
use super::volume::Volumes;
use super::{env, handler, mount, security};
use crate::names;
use crate::status::field;
use crate::validation::at::{At, Causes};
use crate::validation::resources;
use crate::validation::resources::Of;

/// What the pod says that its containers are checked against.
pub(crate) struct Scope<'a> {
    pub(super) volumes: &'a Volumes<'a>,
    pub(super) claims: &'a BTreeSet<&'a str>,
    pub(super) restart_policy: &'a str,
    pub(super) grace: Option<i64>,
    pub(super) host_users: bool,
}

const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const NOT_FOR_INIT: &str = "may not be set for init containers without restartPolicy=Always";
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// The containers that stay.
pub(super) fn check(spec: &At<'_, '_>, scope: &Scope<'_>, causes: &mut Causes) {
    if spec.list("containers").is_empty() {
        causes.push(spec.child("containers").required(""));
        return;
    }
    let mut seen = BTreeSet::new();
    for container in spec.items("containers") {
        common(&container, scope, causes);
        if !seen.insert(container.text("name")) {
            causes.push(
                container
                    .child("name")
                    .duplicate_value(container.text("name")),
            );
        }
        handlers(&container, scope, causes);
        restart_policy(&container, causes);
    }
    let mut ports = BTreeSet::new();
    for container in spec.items("containers") {
        host_ports(&container, &container, &mut ports, causes);
    }
}

fn handlers(container: &At<'_, '_>, scope: &Scope<'_>, causes: &mut Causes) {
    handler::lifecycle(&container.child("lifecycle"), scope.grace, causes);
    for (name, kind) in [
        ("livenessProbe", Probe::Liveness),
        ("readinessProbe", Probe::Readiness),
        ("startupProbe", Probe::Startup),
    ] {
        if let Some(probe) = container.get(name) {
            handler::probe(&probe, kind, causes);
        }
    }
}

/// The containers that come first.
pub(super) fn check_init(spec: &At<'_, '_>, scope: &Scope<'_>, causes: &mut Causes) {
    let mut seen: BTreeSet<&str> = spec
        .items("containers")
        .map(|one| one.text("name"))
        .collect();
    for container in spec.items("initContainers") {
        common(&container, scope, causes);
        let stays = container.text("restartPolicy") == "Always";
        restart_policy(&container, causes);
        let name = container.text("name");
        if seen.contains(name) {
            causes.push(container.child("name").duplicate_value(name));
        } else if !name.is_empty() {
            seen.insert(name);
        }
        // Each is looked at alone, and told as the first.
        let first = format!("{spec}.initContainers[0]");
        let told = At::root(container.value, &first);
        host_ports(&container, &told, &mut BTreeSet::new(), causes);
        if stays {
            handlers(&container, scope, causes);
        } else {
            for field in [
                "lifecycle",
                "livenessProbe",
                "readinessProbe",
                "startupProbe",
            ] {
                if let Some(found) = container.get(field) {
                    causes.push(found.forbidden(NOT_FOR_INIT));
                }
            }
            for policy in container.items("resizePolicy") {
                if policy.text("restartPolicy") == "RestartContainer" {
                    let why =
                        "must not be set to 'RestartContainer' for non-sidecar initContainers";
                    causes.push(policy.child("restartPolicy").invalid(why));
                }
            }
        }
    }
}

/// The containers that are added to a running pod.
pub(crate) fn check_ephemeral(spec: &At<'_, '_>, scope: &Scope<'_>, causes: &mut Causes) {
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| spec.list(list))
        .filter_map(|one| one["name"].as_str())
        .collect();
    let mut seen = others.clone();
    for container in spec.items("ephemeralContainers") {
        common(&container, scope, causes);
        image_padding(&container, causes);
        if !seen.insert(container.text("name")) {
            causes.push(
                container
                    .child("name")
                    .duplicate_value(container.text("name")),
            );
        }
        let target = container.text("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            causes.push(container.child("targetContainerName").not_found());
        }
        for field in [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ] {
            let set = container.get(field).is_some_and(|found| match found.value {
                Value::Array(list) => !list.is_empty(),
                // Resources are always there; what they hold counts.
                Value::Object(map) => field != "resources" || !map.is_empty(),
                _ => true,
            });
            if set {
                causes.push(container.child(field).forbidden(NOT_EPHEMERAL));
            }
        }
        for mounted in container.items("volumeMounts") {
            for field in ["subPath", "subPathExpr"] {
                if !mounted.text(field).is_empty() {
                    causes.push(mounted.child(field).forbidden(NOT_EPHEMERAL));
                }
            }
        }
    }
}

/// What holds for every container.
fn common(container: &At<'_, '_>, scope: &Scope<'_>, causes: &mut Causes) {
    let name = container.child("name");
    match container.text("name") {
        "" => causes.push(name.required("")),
        text => name.complain(names::label_errors(text), causes),
    }
    if container.text("image").is_empty() {
        causes.push(container.child("image").required(""));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    container
        .child("terminationMessagePolicy")
        .one_of(&policies, causes);
    ports(container, causes);
    env::check(container, causes);
    mount::check(container, scope.volumes, causes);
    let pull = ["Always", "IfNotPresent", "Never"];
    container.child("imagePullPolicy").one_of(&pull, causes);
    resources::requirements(
        &container.child("resources"),
        Of::Container,
        scope.claims,
        causes,
    );
    resize_policy(container, scope.restart_policy, causes);
    if let Some(context) = container.get("securityContext") {
        security::check_container(&context, scope.host_users, causes);
    }
}

/// Checked of pods alone: a template may be on its way through something that trims.
pub(super) fn image_padding(container: &At<'_, '_>, causes: &mut Causes) {
    let image = container.text("image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(container.child("image").invalid(why));
    }
}

fn ports(container: &At<'_, '_>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for port in container.items("ports") {
        let name = port.text("name");
        if !name.is_empty() {
            let wrong = names::port_errors(name);
            if !wrong.is_empty() {
                port.child("name").complain(wrong, causes);
            } else if !seen.insert(name) {
                causes.push(port.child("name").duplicate());
            }
        }
        let number = port.child("containerPort");
        match number.value.as_i64().unwrap_or_default() {
            0 => causes.push(number.required("")),
            _ => number.between(1, 65535, causes),
        }
        if port.int("hostPort").unwrap_or_default() != 0 {
            port.child("hostPort").between(1, 65535, causes);
        }
        port.child("protocol")
            .one_of(&["SCTP", "TCP", "UDP"], causes);
    }
}

/// A port of the host is taken once; `told` is where a second taker is said to be.
fn host_ports(
    container: &At<'_, '_>,
    told: &At<'_, '_>,
    taken: &mut BTreeSet<String>,
    causes: &mut Causes,
) {
    for (port, told) in container.items("ports").zip(told.items("ports")) {
        let Some(number) = port.int("hostPort").filter(|number| *number != 0) else {
            continue;
        };
        let address = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
        if !taken.insert(address.clone()) {
            causes.push(told.child("hostPort").duplicate_value(address));
        }
    }
}

fn restart_policy(container: &At<'_, '_>, causes: &mut Causes) {
    let policy = container.child("restartPolicy");
    let rules = container.list("restartPolicyRules");
    if policy.value.is_null() {
        if !rules.is_empty() {
            causes.push(policy.required("must specify restartPolicy when restart rules are used"));
        }
        return;
    }
    policy.one_of_if_set(RESTART_POLICIES, causes);
    if rules.len() > 20 {
        let path = container.child("restartPolicyRules").to_string();
        causes.push(field::too_many(path, rules.len(), 20));
    }
    for rule in container.items("restartPolicyRules") {
        if rule.text("action") != "Restart" {
            causes.push(rule.child("action").not_supported(&["Restart"]));
        }
        let Some(codes) = rule.get("exitCodes") else {
            causes.push(rule.child("exitCodes").required("must be specified"));
            continue;
        };
        if !matches!(codes.text("operator"), "In" | "NotIn") {
            causes.push(codes.child("operator").not_supported(&["In", "NotIn"]));
        }
        let values = codes.list("values");
        if values.len() > 255 {
            let path = codes.child("values").to_string();
            causes.push(field::too_many(path, values.len(), 255));
        }
    }
}

fn resize_policy(container: &At<'_, '_>, restart: &str, causes: &mut Causes) {
    let at = container.child("resizePolicy");
    let told = |value: &str, allowed: &[&str]| at.not_supported_value(value, allowed);
    let mut seen = BTreeSet::new();
    for policy in container.items("resizePolicy") {
        let resource = policy.text("resourceName");
        if !seen.insert(resource) {
            causes.push(policy.duplicate_value(resource));
        }
        match resource {
            "cpu" | "memory" => {}
            "" => causes.push(at.required("")),
            other => causes.push(told(other, &["cpu", "memory"])),
        }
        let how = policy.text("restartPolicy");
        match how {
            "NotRequired" | "RestartContainer" => {}
            "" => causes.push(at.required("")),
            other => causes.push(told(other, &["NotRequired", "RestartContainer"])),
        }
        if restart == "Never" && how != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            causes.push(at.invalid_value(how, why));
        }
    }
}
