//! Capabilities: what a container's root may do.

use k8s_openapi::api::core::v1::Container;

/// All capabilities, by their numbers.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What container runtimes grant by default.
const DEFAULT: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

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
        all(&added) || DEFAULT.contains(*name)
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
