//! Capabilities: what a container's root may do.

use k8s_openapi::api::core::v1::Container;
use windlass_apimachinery::capability::{BASELINE, NAMES};

/// What container runtimes grant by default beside what the baseline profile lets pods add.
const GRANTED_BESIDE_BASELINE: [&str; 1] = ["NET_RAW"];

fn is_default(name: &str) -> bool {
    BASELINE.contains(&name) || GRANTED_BESIDE_BASELINE.contains(&name)
}

/// The capabilities of a container, as OCI writes them. What this process must not grant (some
/// machines lack SYS_RESOURCE) is left out: the runtime would refuse to start the container.
pub(super) fn of(container: &Container) -> Vec<String> {
    wanted(container, &bounding())
}

fn wanted(container: &Container, possible: &[&str]) -> Vec<String> {
    let context = container.security_context.as_ref();
    let changes = context.and_then(|context| context.capabilities.as_ref());
    let list = |names: Option<&Vec<String>>| -> Vec<String> {
        let plain = |name: &String| name.trim_start_matches("CAP_").to_ascii_uppercase();
        names.into_iter().flatten().map(plain).collect()
    };
    let added = list(changes.and_then(|changes| changes.add.as_ref()));
    let dropped = list(changes.and_then(|changes| changes.drop.as_ref()));
    let all = |names: &[String]| names.iter().any(|name| name == "ALL");
    let privileged = context.and_then(|context| context.privileged) == Some(true);
    let has = |name: &&&str| {
        let named = |names: &[String]| names.iter().any(|other| other == **name);
        if privileged || named(&added) {
            return true;
        }
        if named(&dropped) || all(&dropped) {
            return false;
        }
        all(&added) || is_default(name)
    };
    let granted = possible.iter().filter(has);
    granted.map(|name| format!("CAP_{name}")).collect()
}

/// What this process may grant at all.
fn bounding() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let set = set.unwrap_or_default();
    NAMES
        .iter()
        .enumerate()
        .filter(|(number, _)| set & (1 << number) != 0)
        .map(|(_, name)| *name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[allow(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn granted(context: serde_json::Value) -> Vec<String> {
        let container = json!({"name": "a", "securityContext": context});
        let container = serde_json::from_value(container).expect("a container");
        wanted(&container, &["CHOWN", "NET_ADMIN", "KILL"])
    }

    #[test]
    fn what_is_added_and_dropped() {
        assert_eq!(granted(json!({})), ["CAP_CHOWN", "CAP_KILL"]);
        let drop_all = json!({"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}});
        assert_eq!(granted(drop_all), ["CAP_NET_ADMIN"]);
        assert_eq!(
            granted(json!({"capabilities": {"drop": ["KILL"]}})),
            ["CAP_CHOWN"]
        );
        assert_eq!(granted(json!({"privileged": true})).len(), 3);
    }
}
