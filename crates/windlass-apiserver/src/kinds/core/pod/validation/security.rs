//! Security contexts, of pods and of their containers.

use std::collections::BTreeSet;

use super::volume::descending;
use crate::status::field;
use crate::validation::at::{At, Causes};
use crate::validation::internal;

/// The highest id a user or group can have.
const MAX_ID: i64 = i32::MAX as i64;
const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL: &str = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

pub(super) fn check_pod(spec: &At<'_, '_>, causes: &mut Causes) {
    let at = spec.child("securityContext");
    for id in ["fsGroup", "runAsUser", "runAsGroup"] {
        at.child(id).between(0, MAX_ID, causes);
    }
    for group in at.items("supplementalGroups") {
        group.between(0, MAX_ID, causes);
    }
    if spec.flag("hostPID") && spec.flag("shareProcessNamespace") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.push(at.child("shareProcessNamespace").invalid_value(true, why));
    }
    sysctls(spec, &at, causes);
    at.child("fsGroupChangePolicy")
        .one_of_if_set(&["Always", "OnRootMismatch"], causes);
    seccomp(&at, causes);
    app_armor(&at, causes);
    at.child("supplementalGroupsPolicy")
        .one_of_if_set(&["Merge", "Strict"], causes);
    at.child("seLinuxChangePolicy")
        .one_of_if_set(&["Recursive"], causes);
}

fn sysctls(spec: &At<'_, '_>, at: &At<'_, '_>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for sysctl in at.items("sysctls") {
        let name = sysctl.text("name");
        let told = sysctl.child("name");
        if name.is_empty() {
            causes.push(told.required(""));
        } else if !is_sysctl(name) {
            causes.push(told.invalid(SYSCTL));
        } else if seen.contains(name) {
            causes.push(told.duplicate());
        }
        if spec.flag("hostNetwork") && name.replace('/', ".").starts_with("net.") {
            causes.push(told.invalid("may not be specified when 'hostNetwork' is true"));
        } else if spec.flag("hostIPC") && is_ipc(name) {
            causes.push(told.invalid("may not be specified when 'hostIPC' is true"));
        }
        seen.insert(name);
    }
}

fn is_ipc(name: &str) -> bool {
    let name = name.replace('/', ".");
    name.starts_with("kernel.shm")
        || name.starts_with("kernel.msg")
        || name.starts_with("fs.mqueue.")
        || name == "kernel.sem"
}

fn is_sysctl(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let part = |part: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        edge(part.chars().next()) && edge(part.chars().last()) && part.chars().all(inner)
    };
    name.len() <= 253 && name.split(['.', '/']).all(part)
}

pub(super) fn check_container(at: &At<'_, '_>, host_users: bool, causes: &mut Causes) {
    at.child("runAsUser").between(0, MAX_ID, causes);
    at.child("runAsGroup").between(0, MAX_ID, causes);
    if let Some(mount) = at.get("procMount") {
        mount.one_of_if_set(&["Default", "Unmasked"], causes);
        if host_users && mount.value == "Unmasked" {
            causes.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
        }
    }
    seccomp(at, causes);
    if at.value.get("allowPrivilegeEscalation") == Some(&false.into()) {
        let shown = || internal::show(at.value, "core.SecurityContext");
        if at.flag("privileged") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            causes.push(at.invalid_shown(&shown(), why));
        }
        let added = at.child("capabilities");
        for _ in added
            .list("add")
            .iter()
            .filter(|name| *name == "CAP_SYS_ADMIN")
        {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            causes.push(at.invalid_shown(&shown(), why));
        }
    }
    app_armor(at, causes);
}

fn seccomp(context: &At<'_, '_>, causes: &mut Causes) {
    let Some(at) = context.get("seccompProfile") else {
        return;
    };
    let kind = at.text("type");
    if kind.is_empty() {
        causes.push(
            at.child("type")
                .required("type is required when seccompProfile is set"),
        );
    } else if !PROFILES.contains(&kind) {
        causes.push(at.child("type").not_supported(PROFILES));
    }
    let profile = at.child("localhostProfile");
    match (kind == "Localhost", profile.value.as_str()) {
        (true, None) => causes.push(profile.required("must be set when seccomp type is Localhost")),
        (true, Some(path)) => descending(&profile, path, causes),
        (false, Some(_)) => {
            let shown = internal::show(at.value, "core.SeccompProfile");
            let why = "can only be set when seccomp type is Localhost";
            causes.push(profile.invalid_shown(&shown, why));
        }
        (false, None) => {}
    }
}

fn app_armor(context: &At<'_, '_>, causes: &mut Causes) {
    let Some(at) = context.get("appArmorProfile") else {
        return;
    };
    let profile = at.child("localhostProfile");
    match (at.text("type"), profile.value.as_str()) {
        ("Localhost", path) => {
            let path = path.unwrap_or_default();
            if path.trim() != path {
                causes.push(profile.invalid("must not be padded with whitespace"));
            } else if path.is_empty() {
                causes.push(profile.required("must be set when AppArmor type is Localhost"));
            }
            if path.len() > 4095 {
                causes.push(field::too_long(profile.to_string(), 4095));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(_)) => {
            causes.push(profile.invalid("can only be set when AppArmor type is Localhost"));
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => causes.push(
            at.child("type")
                .required("type is required when appArmorProfile is set"),
        ),
        _ => causes.push(at.child("type").not_supported(PROFILES)),
    }
}
