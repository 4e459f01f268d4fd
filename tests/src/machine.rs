//! The machine around a test: a network of its own, and what a cluster leaves behind.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Keeps a network namespace alive.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

thread_local! {
    static NETWORK: OnceCell<Option<Holder>> = const { OnceCell::new() };
}

/// Whether this is root, who can have sandboxes.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Puts this thread, and whatever it starts, on a network of its own; only root can.
pub fn own_network() {
    NETWORK.with(|network| {
        network.get_or_init(|| is_root().then(make));
    });
}

fn make() -> Holder {
    let child = Command::new("unshare")
        .args(["--net", "--", "sleep", "infinity"])
        .stdin(Stdio::null())
        .spawn()
        .expect("unshare runs");
    let path = format!("/proc/{}/ns/net", child.id());
    let own = fs::read_link("/proc/self/ns/net").expect("a namespace");
    // The program takes a moment to get there.
    crate::eventually("a network of its own", || {
        fs::read_link(&path)
            .is_ok_and(|theirs| theirs != own)
            .then_some(())
    });
    let namespace = fs::File::open(path).expect("a namespace");
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .expect("root may enter it");
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    assert!(up.expect("ip runs").success());
    Holder(child)
}

/// What a cluster could leave behind, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traces {
    /// Network interfaces.
    pub interfaces: BTreeSet<String>,
    /// The nftables ruleset.
    pub rules: String,
    /// Mount points.
    pub mounts: BTreeSet<String>,
    /// Cgroups that bear the name of a cluster.
    pub cgroups: BTreeSet<String>,
    /// What is in the folders that programs like to leave things in.
    pub files: BTreeSet<String>,
    /// Processes whose command line or root names the folder.
    pub processes: BTreeSet<String>,
}

impl Traces {
    /// What is there now; processes are those that have to do with `folder`.
    pub fn now(folder: &Path) -> Self {
        let output = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output().expect("it runs");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let interfaces = output("ip", &["-brief", "link"]);
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        Self {
            interfaces: interfaces
                .lines()
                .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
                .collect(),
            rules: output("nft", &["list", "ruleset"]),
            mounts: mounts
                .lines()
                .filter_map(|line| line.split_whitespace().nth(4).map(str::to_owned))
                .filter(|mount| mount.starts_with(&*folder.to_string_lossy()))
                .collect(),
            cgroups: cgroups(folder),
            files: ["/run", "/var/run", "/etc", "/var/lib", "/run/netns"]
                .iter()
                .flat_map(|folder| entries(folder))
                .collect(),
            processes: processes(folder),
        }
    }
}

fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path().to_string_lossy().into_owned())
        .collect()
}

/// The cgroups that bear the name of the folder's cluster, which is that of its bridge.
fn cgroups(folder: &Path) -> BTreeSet<String> {
    let network = fs::read(folder.join(".windlass/network.json")).unwrap_or_default();
    let network: serde_json::Value = serde_json::from_slice(&network).unwrap_or_default();
    let Some(name) = network["name"].as_str() else {
        return BTreeSet::new();
    };
    let hierarchies = entries("/sys/fs/cgroup");
    let groups = hierarchies
        .iter()
        .map(|hierarchy| format!("{hierarchy}/{name}"));
    groups.filter(|group| Path::new(group).exists()).collect()
}

/// Processes that are in the folder (the cluster), name it (shims), or see a root of its own
/// (containers).
fn processes(folder: &Path) -> BTreeSet<String> {
    let folder = folder.to_string_lossy();
    let mut found = BTreeSet::new();
    for path in entries("/proc") {
        let is_process = path.trim_start_matches("/proc/").parse::<u32>().is_ok();
        let Ok(line) = fs::read(format!("{path}/cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let mounts = fs::read_to_string(format!("{path}/mountinfo")).unwrap_or_default();
        // The writable layer of a container's root is named in its first mount.
        let root = mounts
            .lines()
            .find(|line| line.split_whitespace().nth(4) == Some("/"));
        let inside = root.is_some_and(|root| root.contains(&*folder));
        let there = fs::read_link(format!("{path}/cwd")).is_ok_and(|cwd| cwd.starts_with(&*folder));
        if is_process && (line.contains(&*folder) || inside || there) {
            found.insert(format!("{path} {line}"));
        }
    }
    found
}

/// Clock ticks of the kernel in a second, as Linux reports them to programs.
const TICKS: f64 = 100.0;

/// What is in a file; nothing if it cannot be read.
pub fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Seconds of a processor that a process used, and those of the children it has waited for.
pub fn processor_seconds(pid: i64) -> (f64, f64) {
    let stat = text(&format!("/proc/{pid}/stat"));
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let at = |place: usize| {
        fields
            .get(place)
            .and_then(|field| field.parse().ok())
            .unwrap_or(0.0)
    };
    let (user, system, child_user, child_system): (f64, f64, f64, f64) =
        (at(11), at(12), at(13), at(14));
    ((user + system) / TICKS, (child_user + child_system) / TICKS)
}

/// A line of a process's status, in MB.
pub fn megabytes(pid: &str, line: &str) -> f64 {
    let status = text(&format!("/proc/{pid}/status"));
    let value = status.lines().find_map(|known| known.strip_prefix(line));
    let value = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    let kilobytes: f64 = value.unwrap_or(0.0);
    kilobytes / 1024.0
}
