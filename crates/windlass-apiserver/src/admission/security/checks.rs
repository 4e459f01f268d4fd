//! The rules of the levels, as a table: from which version each holds, and what it says.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_apimachinery::capability::BASELINE;

use super::level::{Level, LevelVersion};
use super::profile;
use super::sentence::{all_containers, containers, name, plural, quoted, setters, those, values};

/// The latest version that has rules of its own.
const LATEST: u32 = 35;

/// A rule that a pod breaks.
#[derive(Debug)]
pub(super) struct Violation {
    /// In a few words.
    pub(super) reason: String,
    /// Where, and what should be there.
    pub(super) detail: String,
}

impl Violation {
    #[allow(clippy::unnecessary_wraps, reason = "a rule that is broken says so")]
    pub(super) fn new(reason: &str, detail: impl Into<String>) -> Option<Self> {
        let (reason, detail) = (reason.to_owned(), detail.into());
        Some(Self { reason, detail })
    }
}

/// Looks at a pod by the rules of a minor version.
type Check = fn(&Value, u32) -> Option<Violation>;

struct Rule {
    id: &'static str,
    level: Level,
    /// The first minor version that has it.
    since: u32,
    /// The weaker rule of the level below that it takes the place of.
    instead_of: &'static str,
    check: Check,
}

const fn baseline(id: &'static str, since: u32, check: Check) -> Rule {
    Rule {
        id,
        level: Level::Baseline,
        since,
        instead_of: "",
        check,
    }
}

const fn restricted(id: &'static str, since: u32, instead_of: &'static str, check: Check) -> Rule {
    Rule {
        id,
        level: Level::Restricted,
        since,
        instead_of,
        check,
    }
}

/// In the order violations are told.
const RULES: &[Rule] = &[
    baseline("appArmorProfile", 0, profile::app_armor),
    baseline("capabilities_baseline", 0, capabilities),
    baseline("hostNamespaces", 0, host_namespaces),
    baseline("hostPathVolumes", 0, host_paths),
    baseline("hostPorts", 0, host_ports),
    baseline("hostProbesAndHostLifecycle", 34, probe_hosts),
    baseline("privileged", 0, privileged),
    baseline("procMount", 0, |pod, minor| {
        if minor >= 35 && has_own_users(pod) {
            return None;
        }
        proc_mount(pod, minor)
    }),
    baseline("seLinuxOptions", 0, profile::se_linux),
    baseline("seccompProfile_baseline", 0, profile::seccomp),
    baseline("sysctls", 0, sysctls),
    baseline("windowsHostProcess", 0, windows_host_process),
    restricted("allowPrivilegeEscalation", 8, "", privilege_escalation),
    restricted(
        "capabilities_restricted",
        22,
        "capabilities_baseline",
        dropped_capabilities,
    ),
    restricted("procMount_restricted", 35, "procMount", proc_mount),
    restricted("restrictedVolumes", 0, "hostPathVolumes", volumes),
    restricted("runAsNonRoot", 0, "", run_as_non_root),
    restricted("runAsUser", 23, "", run_as_user),
    restricted(
        "seccompProfile_restricted",
        19,
        "seccompProfile_baseline",
        profile::seccomp_set,
    ),
];

/// What a pod breaks of the rules of a level.
pub(super) fn run(by: LevelVersion, pod: &Value) -> Vec<Violation> {
    let minor = by.version.map_or(LATEST, |minor| minor.min(LATEST));
    let holds = |rule: &&Rule| rule.level <= by.level && rule.since <= minor;
    let overridden: BTreeSet<&str> = RULES
        .iter()
        .filter(holds)
        .map(|rule| rule.instead_of)
        .collect();
    if by.level == Level::Privileged {
        return Vec::new();
    }
    RULES
        .iter()
        .filter(holds)
        .filter(|rule| !overridden.contains(rule.id))
        .filter_map(|rule| (rule.check)(pod, minor))
        .collect()
}

/// Whether the users of a pod are not those of the machine.
fn has_own_users(pod: &Value) -> bool {
    pod["spec"]["hostUsers"] == false
}

/// Windows has no such thing, from a version on.
pub(super) fn is_windows(pod: &Value, minor: u32) -> bool {
    minor >= 25 && pod["spec"]["os"]["name"] == "windows"
}

pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
}

fn added(container: &Value) -> impl Iterator<Item = &str> {
    texts(&container["securityContext"]["capabilities"]["add"])
}

fn capabilities(pod: &Value, _: u32) -> Option<Violation> {
    let (bad, found) = values(&pod["spec"], |container| {
        added(container)
            .filter(|capability| !BASELINE.contains(capability))
            .map(str::to_owned)
    });
    if bad.is_empty() {
        return None;
    }
    let found = quoted(found.iter().map(String::as_str));
    let who = containers(&bad);
    Violation::new(
        "non-default capabilities",
        format!("{who} must not include {found} in securityContext.capabilities.add"),
    )
}

fn dropped_capabilities(pod: &Value, minor: u32) -> Option<Violation> {
    if is_windows(pod, minor) {
        return None;
    }
    let spec = &pod["spec"];
    let missing = those(spec, |container| {
        let dropped = &container["securityContext"]["capabilities"]["drop"];
        !texts(dropped).any(|capability| capability == "ALL")
    });
    let (adding, found) = values(spec, |container| {
        added(container)
            .filter(|capability| *capability != "NET_BIND_SERVICE")
            .map(str::to_owned)
    });
    let mut details = Vec::new();
    if !missing.is_empty() {
        let who = containers(&missing);
        details.push(format!(
            "{who} must set securityContext.capabilities.drop=[\"ALL\"]"
        ));
    }
    if !adding.is_empty() {
        let (who, found) = (
            containers(&adding),
            quoted(found.iter().map(String::as_str)),
        );
        details.push(format!(
            "{who} must not include {found} in securityContext.capabilities.add"
        ));
    }
    if details.is_empty() {
        return None;
    }
    Violation::new("unrestricted capabilities", details.join("; "))
}

fn host_namespaces(pod: &Value, _: u32) -> Option<Violation> {
    let spec = &pod["spec"];
    let used: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| spec[*field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    if used.is_empty() {
        return None;
    }
    Violation::new("host namespaces", used.join(", "))
}

fn pod_volumes(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["volumes"].as_array().into_iter().flatten()
}

fn host_paths(pod: &Value, _: u32) -> Option<Violation> {
    let bad: Vec<&str> = pod_volumes(pod)
        .filter(|volume| volume.get("hostPath").is_some())
        .map(name)
        .collect();
    if bad.is_empty() {
        return None;
    }
    let word = plural("volume", "volumes", bad.len());
    Violation::new("hostPath volumes", format!("{word} {}", quoted(bad)))
}

const ALLOWED_VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

fn volumes(pod: &Value, _: u32) -> Option<Violation> {
    let (mut bad, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in pod_volumes(pod) {
        let fields = volume.as_object().into_iter().flatten();
        let mut fields = fields.map(|(field, _)| field.as_str());
        let kind = fields.find(|field| *field != "name").unwrap_or("unknown");
        if !ALLOWED_VOLUMES.contains(&kind) {
            bad.push(name(volume));
            kinds.insert(kind);
        }
    }
    if bad.is_empty() {
        return None;
    }
    let count = bad.len();
    Violation::new(
        "restricted volume types",
        format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", count),
            quoted(bad),
            plural("uses", "use", count),
            plural(
                "restricted volume type",
                "restricted volume types",
                kinds.len()
            ),
            quoted(kinds)
        ),
    )
}

fn host_ports(pod: &Value, _: u32) -> Option<Violation> {
    let (bad, found) = values(&pod["spec"], |container| {
        let ports = container["ports"].as_array().into_iter().flatten();
        ports
            .filter_map(|port| port["hostPort"].as_u64())
            .filter(|port| *port != 0)
            .map(|port| port.to_string())
    });
    if bad.is_empty() {
        return None;
    }
    let ports: Vec<&str> = found.iter().map(String::as_str).collect();
    Violation::new(
        "hostPort",
        format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", ports.len()),
            ports.join(", ")
        ),
    )
}

fn probe_hosts(pod: &Value, _: u32) -> Option<Violation> {
    let (mut bad, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in all_containers(&pod["spec"]) {
        let lifecycle = &container["lifecycle"];
        let handlers = ["livenessProbe", "readinessProbe", "startupProbe"]
            .map(|probe| &container[probe])
            .into_iter()
            .chain([&lifecycle["postStart"], &lifecycle["preStop"]]);
        for handler in handlers {
            for kind in ["httpGet", "tcpSocket"] {
                let host = handler[kind]["host"].as_str().unwrap_or_default();
                if !host.is_empty() {
                    bad.insert(name(container));
                    hosts.insert(host);
                }
            }
        }
    }
    if bad.is_empty() {
        return None;
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    let word = "probe or lifecycle host";
    let words = "probe or lifecycle hosts";
    Violation::new(
        word,
        format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural(word, words, hosts.len()),
            quoted(hosts)
        ),
    )
}

fn privileged(pod: &Value, _: u32) -> Option<Violation> {
    let bad = those(&pod["spec"], |container| {
        container["securityContext"]["privileged"] == true
    });
    if bad.is_empty() {
        return None;
    }
    let who = containers(&bad);
    Violation::new(
        "privileged",
        format!("{who} must not set securityContext.privileged=true"),
    )
}

fn proc_mount(pod: &Value, _: u32) -> Option<Violation> {
    let (bad, found) = values(&pod["spec"], |container| {
        let mount = container["securityContext"]["procMount"].as_str();
        mount.filter(|mount| *mount != "Default").map(str::to_owned)
    });
    if bad.is_empty() {
        return None;
    }
    let (who, found) = (containers(&bad), quoted(found.iter().map(String::as_str)));
    Violation::new(
        "procMount",
        format!("{who} must not set securityContext.procMount to {found}"),
    )
}

/// Settings of the kernel that are a pod's own, and the version from which they are known to be.
const SAFE_SYSCTLS: &[(u32, &str)] = &[
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
];

fn sysctls(pod: &Value, minor: u32) -> Option<Violation> {
    let set = pod["spec"]["securityContext"]["sysctls"].as_array();
    let names = set.into_iter().flatten().map(name);
    let is_safe = |wanted: &&str| {
        let known = SAFE_SYSCTLS.iter();
        known
            .filter(|(since, _)| *since <= minor)
            .any(|(_, safe)| safe == wanted)
    };
    let bad: Vec<&str> = names.filter(|name| !is_safe(name)).collect();
    if bad.is_empty() {
        return None;
    }
    Violation::new("forbidden sysctls", bad.join(", "))
}

fn windows_host_process(pod: &Value, _: u32) -> Option<Violation> {
    let is_set = |of: &Value| of["securityContext"]["windowsOptions"]["hostProcess"] == true;
    let spec = &pod["spec"];
    let (own, bad) = (is_set(spec), those(spec, is_set));
    if !own && bad.is_empty() {
        return None;
    }
    let who = setters(own, &bad);
    Violation::new(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}

fn privilege_escalation(pod: &Value, minor: u32) -> Option<Violation> {
    if is_windows(pod, minor) {
        return None;
    }
    let bad = those(&pod["spec"], |container| {
        container["securityContext"]["allowPrivilegeEscalation"] != false
    });
    if bad.is_empty() {
        return None;
    }
    let who = containers(&bad);
    Violation::new(
        "allowPrivilegeEscalation != false",
        format!("{who} must set securityContext.allowPrivilegeEscalation=false"),
    )
}

fn run_as_non_root(pod: &Value, minor: u32) -> Option<Violation> {
    if minor >= 35 && has_own_users(pod) {
        return None;
    }
    let spec = &pod["spec"];
    let of = |part: &Value| part["securityContext"]["runAsNonRoot"].as_bool();
    let own = of(spec);
    let explicit = those(spec, |container| of(container) == Some(false));
    let reason = "runAsNonRoot != true";
    if own == Some(false) || !explicit.is_empty() {
        let who = setters(own == Some(false), &explicit);
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Violation::new(reason, detail);
    }
    let silent = those(spec, |container| {
        of(container).is_none() && own != Some(true)
    });
    if silent.is_empty() {
        return None;
    }
    let who = containers(&silent);
    Violation::new(
        reason,
        format!("pod or {who} must set securityContext.runAsNonRoot=true"),
    )
}

fn run_as_user(pod: &Value, minor: u32) -> Option<Violation> {
    if minor >= 35 && has_own_users(pod) {
        return None;
    }
    let is_root = |part: &Value| part["securityContext"]["runAsUser"] == 0;
    let spec = &pod["spec"];
    let (own, bad) = (is_root(spec), those(spec, is_root));
    if !own && bad.is_empty() {
        return None;
    }
    let who = setters(own, &bad);
    Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0"))
}
