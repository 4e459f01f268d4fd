//! What a cluster may leave on the machine: nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What there is of the cluster in a folder outside that folder: processes, mounts, cgroups,
/// interfaces and rules.
pub(crate) fn of(folder: &Path) -> Vec<String> {
    let path = folder.to_string_lossy();
    let processes = super::stage::marked(&path).into_iter();
    let mut found: Vec<String> = processes.map(|pid| format!("process {pid}")).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let mounts = mounts.lines().filter(|line| line.contains(&*path));
    found.extend(mounts.map(|line| format!("mount {line}")));
    let Ok(network) = fs::read(folder.join("network.json")) else {
        // Plain processes have nothing else.
        return found;
    };
    let network: Value = serde_json::from_slice(&network).expect("a network");
    let name = network["name"].as_str().expect("a name");
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten();
    let hierarchies = hierarchies.flatten().map(|entry| entry.path());
    for hierarchy in hierarchies.chain(["/sys/fs/cgroup".into()]) {
        let group = hierarchy.join(name);
        if group.exists() {
            found.push(format!("cgroup {}", group.display()));
        }
    }
    // Tests that run beside this one have bridges and rules of their own, and links to pods.
    let interfaces = fs::read_to_string("/proc/net/dev").expect("interfaces");
    if interfaces.contains(name) {
        found.push(format!("interface {name}"));
    }
    let rules = Command::new("nft").args(["list", "tables"]).output();
    let rules = rules.expect("the program nft").stdout;
    if String::from_utf8_lossy(&rules).contains(name) {
        found.push(format!("rules {name}"));
    }
    found
}
