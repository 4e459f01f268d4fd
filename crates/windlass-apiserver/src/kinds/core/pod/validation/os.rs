//! What a pod of one operating system may not say.

use crate::validation::at::{At, Causes};

const FOR_WINDOWS: &str = "cannot be set for a windows pod";
const FOR_LINUX: &str = "windows options cannot be set for a linux pod";

/// Fields of a pod that Windows has no use for, in the order they are looked at.
const POD: &[&str] = &[
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];
const CONTAINER: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

pub(super) fn check(spec: &At<'_, '_>, causes: &mut Causes) {
    let Some(os) = spec.get("os") else {
        return;
    };
    match os.text("name") {
        "" => causes.push(os.child("name").required("")),
        "linux" => linux(spec, causes),
        "windows" => windows(spec, causes),
        other => causes.push(os.not_supported_value(other, &["linux", "windows"])),
    }
}

fn contexts(spec: &At<'_, '_>, mut look: impl FnMut(&At<'_, '_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items(list) {
            if let Some(context) = container.get("securityContext") {
                look(&context);
            }
        }
    }
}

fn linux(spec: &At<'_, '_>, causes: &mut Causes) {
    if let Some(options) = spec.child("securityContext").get("windowsOptions") {
        causes.push(options.forbidden(FOR_LINUX));
    }
    contexts(spec, |context| {
        if let Some(options) = context.get("windowsOptions") {
            causes.push(options.forbidden(FOR_LINUX));
        }
    });
}

fn windows(spec: &At<'_, '_>, causes: &mut Causes) {
    for path in POD {
        let found = path
            .split('.')
            .try_fold(spec.value, |value, part| value.get(part));
        let unset = match *path {
            "hostPID" | "hostIPC" => found != Some(&true.into()),
            _ => found.is_none_or(serde_json::Value::is_null),
        };
        if !unset {
            causes.push(spec.child(path).forbidden(FOR_WINDOWS));
        }
    }
    contexts(spec, |context| {
        for field in CONTAINER {
            if let Some(found) = context.get(field) {
                causes.push(found.forbidden(FOR_WINDOWS));
            }
        }
    });
}
