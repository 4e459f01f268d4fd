//! Rules about the profiles a pod runs under: `AppArmor`, `SELinux`, seccomp.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{Violation, is_windows};
use super::sentence::{all_containers, containers, name, plural, quoted, setters, those, values};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

fn annotations(pod: &Value) -> impl Iterator<Item = (&str, &str)> {
    let annotations = pod["metadata"]["annotations"].as_object();
    let annotations = annotations.into_iter().flatten();
    annotations.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn shown(key: &str, value: &str) -> String {
    format!("{key}={value:?}")
}

/// The type of a profile that is not among those everybody may have.
fn forbidden_type<'a>(part: &'a Value, profile: &str) -> Option<&'a str> {
    let profile = part["securityContext"].get(profile)?;
    let kind = profile["type"].as_str().unwrap_or_default();
    (!matches!(kind, "RuntimeDefault" | "Localhost")).then_some(kind)
}

pub(super) fn app_armor(pod: &Value, _: u32) -> Option<Violation> {
    let spec = &pod["spec"];
    let forbidden = |part| forbidden_type(part, "appArmorProfile").map(str::to_owned);
    let (bad, mut found) = values(spec, forbidden);
    let own = forbidden(spec);
    let mut who = Vec::new();
    if own.is_some() {
        who.push("pod".to_owned());
    }
    found.extend(own);
    if !bad.is_empty() {
        who.push(containers(&bad));
    }
    let annotated: Vec<String> = annotations(pod)
        .filter(|(key, value)| {
            let allowed =
                matches!(*value, "" | "runtime/default") || value.starts_with("localhost/");
            key.starts_with(APP_ARMOR) && !allowed
        })
        .map(|(key, value)| shown(key, value))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut all: Vec<String> = found.into_iter().collect();
    if !annotated.is_empty() {
        who.push(plural("annotation", "annotations", annotated.len()).to_owned());
        all.extend(annotated);
    }
    if who.is_empty() {
        return None;
    }
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        all.len(),
    );
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        who.join(" and "),
        quoted(all.iter().map(String::as_str))
    );
    Violation::new(reason, detail)
}

pub(super) fn se_linux(pod: &Value, minor: u32) -> Option<Violation> {
    let spec = &pod["spec"];
    let text = |part: &Value, field: &str| {
        let options = &part["securityContext"]["seLinuxOptions"];
        options[field].as_str().unwrap_or_default().to_owned()
    };
    let bad_type = |part: &Value| {
        let kind = text(part, "type");
        let allowed = match kind.as_str() {
            "" | "container_t" | "container_init_t" | "container_kvm_t" => true,
            "container_engine_t" => minor >= 31,
            _ => false,
        };
        (!allowed).then_some(kind)
    };
    let has = |field: &'static str| move |part: &Value| !text(part, field).is_empty();
    let is_bad = |part: &Value| bad_type(part).is_some() || has("user")(part) || has("role")(part);
    let (own, bad) = (is_bad(spec), those(spec, is_bad));
    if !own && bad.is_empty() {
        return None;
    }
    let parts = || std::iter::once(spec).chain(all_containers(spec));
    let types: BTreeSet<String> = parts().filter_map(bad_type).collect();
    let mut data = Vec::new();
    if !types.is_empty() {
        let word = plural("type", "types", types.len());
        let types = quoted(types.iter().map(String::as_str));
        data.push(format!("{word} {types}"));
    }
    for field in ["user", "role"] {
        if parts().any(has(field)) {
            data.push(format!("{field} may not be set"));
        }
    }
    let who = setters(own, &bad);
    let data = data.join("; ");
    Violation::new(
        "seLinuxOptions",
        format!("{who} set forbidden securityContext.seLinuxOptions: {data}"),
    )
}

/// Profiles that are set must be those everybody may have.
pub(super) fn seccomp(pod: &Value, minor: u32) -> Option<Violation> {
    if minor < 19 {
        return annotated_seccomp(pod);
    }
    let spec = &pod["spec"];
    let forbidden = |part| forbidden_type(part, "seccompProfile").map(str::to_owned);
    let (bad, mut found) = values(spec, forbidden);
    let own = forbidden(spec);
    let by_pod = own.is_some();
    found.extend(own);
    if !by_pod && bad.is_empty() {
        return None;
    }
    let who = setters(by_pod, &bad);
    let found = quoted(found.iter().map(String::as_str));
    Violation::new(
        "seccompProfile",
        format!("{who} must not set securityContext.seccompProfile.type to {found}"),
    )
}

/// Before there was a field, there were annotations.
fn annotated_seccomp(pod: &Value) -> Option<Violation> {
    let own: BTreeSet<String> = all_containers(&pod["spec"])
        .map(|container| format!("{SECCOMP_CONTAINER}{}", name(container)))
        .chain([SECCOMP_POD.to_owned()])
        .collect();
    let forbidden: BTreeSet<String> = annotations(pod)
        .filter(|(key, value)| {
            let allowed = matches!(*value, "runtime/default" | "docker/default")
                || value.starts_with("localhost/");
            own.contains(*key) && !allowed
        })
        .map(|(key, value)| shown(key, value))
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let word = plural("annotation", "annotations", forbidden.len());
    let forbidden: Vec<String> = forbidden.into_iter().collect();
    let detail = format!("forbidden {word} {}", forbidden.join(", "));
    Violation::new("seccompProfile", detail)
}

/// Every container must have a profile, of its own or by its pod.
pub(super) fn seccomp_set(pod: &Value, minor: u32) -> Option<Violation> {
    if is_windows(pod, minor) {
        return None;
    }
    if let Some(violation) = seccomp(pod, minor) {
        return Some(violation);
    }
    let has = |part: &Value| part["securityContext"].get("seccompProfile").is_some();
    let spec = &pod["spec"];
    let own = has(spec);
    let silent = those(spec, |container| !own && !has(container));
    if silent.is_empty() {
        return None;
    }
    let who = containers(&silent);
    Violation::new(
        "seccompProfile",
        format!(
            "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        ),
    )
}
