//! The description of a container for the OCI runtime: `config.json`.
//!
//! `oomScoreAdj` and resource limits of the process are left out: some machines have no
//! CAP_SYS_RESOURCE, and the runtime would fail. Namespaces are filled in by the shim, whose they are.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use super::{capability, files};
use crate::program::Program;
use crate::quantity;
use crate::runtime::{Launch, Part};

/// How many processes and threads a container may have: one that makes them without end must not
/// take the machine's.
const MOST_PROCESSES: u32 = 4096;

/// What is known about where a container runs.
pub(super) struct Place<'a> {
    /// The folder with the pod's `/etc` files.
    pub(super) etc: &'a Path,
    /// The mounts that make up its root, where it has no image.
    pub(super) root: Vec<Value>,
    /// Files of the machine that are shown although the root does not have them, and where.
    pub(super) programs: Vec<(PathBuf, PathBuf)>,
    /// What the pod must not see although its root shows what is around it.
    pub(super) hidden: Option<&'a Path>,
    /// The folder in which the pod's shim mounts parts of volumes.
    pub(super) parts: &'a Path,
    /// The cgroup of the container, below each hierarchy's root.
    pub(super) cgroup: String,
    /// Where an image says its program runs; the root without one.
    pub(super) working_dir: String,
}

/// The description of a container.
pub(super) fn describe(launch: &Launch, program: &Program, place: &Place<'_>) -> Value {
    let container = &launch.container;
    let context = container.security_context.as_ref();
    let privileged = context.and_then(|context| context.privileged) == Some(true);
    let escalation = context.and_then(|context| context.allow_privilege_escalation);
    let capabilities = capability::of(container);
    // Whoever is not root has no capabilities but may gain them; root has them.
    let user = launch.user.uid.or(program.user).unwrap_or_default();
    let effective = if user == 0 {
        capabilities.clone()
    } else {
        Vec::new()
    };
    let own = container
        .working_dir
        .as_deref()
        .filter(|dir| !dir.is_empty());
    let environment: Vec<String> = program
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut description = json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": container.tty == Some(true),
            "user": {
                "uid": user,
                "gid": launch.user.gid.unwrap_or(if launch.user.uid.is_none() { user } else { 0 }),
                "additionalGids": launch.user.groups,
            },
            "args": program.argv,
            "env": environment,
            "cwd": own.unwrap_or(&place.working_dir),
            "capabilities": {
                "bounding": capabilities,
                "effective": effective,
                "permitted": effective,
            },
            "noNewPrivileges": escalation == Some(false),
        },
        "root": {"path": "rootfs", "readonly": is_read_only(launch)},
        "mounts": mounts(launch, place),
        "linux": {
            "cgroupsPath": place.cgroup,
            "resources": resources(container),
        },
    });
    if container.tty == Some(true) {
        name_terminal(&mut description["process"]);
    }
    if !privileged {
        description["linux"]["maskedPaths"] = json!([
            "/proc/acpi",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_list",
            "/proc/timer_list",
            "/proc/sched_debug",
            "/proc/scsi",
            "/sys/firmware",
        ]);
        description["linux"]["readonlyPaths"] = json!([
            "/proc/bus",
            "/proc/fs",
            "/proc/irq",
            "/proc/sys",
            "/proc/sysrq-trigger",
        ]);
    }
    description
}

/// Whether a container may not write to its root.
pub(super) fn is_read_only(launch: &Launch) -> bool {
    let context = launch.container.security_context.as_ref();
    context.and_then(|context| context.read_only_root_filesystem) == Some(true)
}

/// Tells a process what kind of terminal it has, unless it knows better.
pub(super) fn name_terminal(process: &mut Value) {
    if let Some(environment) = process["env"].as_array_mut() {
        let names = |variable: &Value| variable.as_str().is_some_and(|v| v.starts_with("TERM="));
        if !environment.iter().any(names) {
            environment.push("TERM=xterm".into());
        }
    }
}

fn mounts(launch: &Launch, place: &Place<'_>) -> Vec<Value> {
    let kernel = |path: &str, kind: &str, options: &[&str]| json!({"destination": path, "type": kind, "source": kind, "options": options});
    let mut mounts = vec![
        kernel("/proc", "proc", &[]),
        kernel(
            "/dev",
            "tmpfs",
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        ),
        kernel(
            "/dev/pts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
                "gid=5",
            ],
        ),
        kernel(
            "/dev/shm",
            "tmpfs",
            &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
        ),
        kernel("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        kernel("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
    ];
    // Before anything that may lie in it.
    mounts.splice(..0, place.root.iter().cloned());
    for (program, path) in &place.programs {
        mounts.push(bind(program, &path.to_string_lossy(), true));
    }
    if let Some(hidden) = place.hidden {
        let path = hidden.to_string_lossy();
        mounts.push(kernel(&path, "tmpfs", &["ro", "mode=700", "size=4k"]));
    }
    for name in files::NAMES {
        mounts.push(bind(&place.etc.join(name), &format!("/etc/{name}"), false));
    }
    for (number, mount) in launch.mounts.iter().enumerate() {
        let part = mount.part.as_ref().map(|_| place.part(launch, number));
        let source = part.as_ref().unwrap_or(&mount.source);
        mounts.push(bind(source, &mount.path, mount.read_only));
    }
    mounts
}

/// The parts of volumes that the description of a container expects at paths of the shim's.
pub(super) fn parts(launch: &Launch, place: &Place<'_>) -> Vec<(PathBuf, Part)> {
    let mounts = launch.mounts.iter().enumerate();
    mounts
        .filter_map(|(number, mount)| {
            let part = mount.part.clone()?;
            Some((place.part(launch, number), part))
        })
        .collect()
}

impl Place<'_> {
    /// Where the shim mounts the part of a volume that one of the mounts is.
    fn part(&self, launch: &Launch, number: usize) -> PathBuf {
        let (name, run) = (&launch.container.name, launch.run);
        self.parts.join(format!("{name}-{run}-{number}"))
    }
}

fn bind(source: &Path, path: &str, read_only: bool) -> Value {
    let access = if read_only { "ro" } else { "rw" };
    json!({
        "destination": path,
        "type": "bind",
        "source": source,
        "options": ["rbind", "rprivate", access],
    })
}

/// Whether this machine counts the processes of cgroups.
fn has_process_limits() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let all = read("/sys/fs/cgroup/cgroup.controllers");
    Path::new("/sys/fs/cgroup/pids").is_dir() || all.split_whitespace().any(|name| name == "pids")
}

/// The limits of a container, as far as it has any.
fn resources(container: &Container) -> Value {
    let limits = container
        .resources
        .as_ref()
        .and_then(|resources| resources.limits.as_ref());
    let limit = |name: &str| limits?.get(name).map(|limit| limit.0.as_str());
    let mut resources = json!({});
    if has_process_limits() {
        resources["pids"] = json!({"limit": MOST_PROCESSES});
    }
    if let Some(bytes) = limit("memory").and_then(quantity::units) {
        resources["memory"] = json!({"limit": i64::try_from(bytes).unwrap_or(i64::MAX)});
    }
    if let Some(cpu) = limit("cpu").and_then(quantity::millis) {
        // A tenth of a second is the period that Kubernetes uses, too.
        let quota = i64::try_from(cpu * 100).unwrap_or(i64::MAX).max(1000);
        resources["cpu"] = json!({"quota": quota, "period": 100_000});
    }
    resources
}
