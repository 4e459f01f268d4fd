//! Starting and stopping: nothing is left behind, and nobody else gets in.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use windlass_tests::{Folder, exists, memcached_pid, ready_pods, signal};

fn pid_of(folder: &Folder) -> i32 {
    i32::try_from(
        folder.status()["pid"]
            .as_i64()
            .expect("status tells the process"),
    )
    .expect("a process number")
}

fn curl(folder: &Folder, args: &[&str]) -> String {
    let address = folder.status()["address"]
        .as_str()
        .expect("status tells the address")
        .to_owned();
    let (path, rest) = args.split_last().expect("a path");
    let ca = folder.path().join(".windlass/pki/ca.crt");
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "10", "--cacert"])
        .arg(ca)
        .args(rest)
        .arg(format!("{address}{path}"))
        .output()
        .expect("curl runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn down_leaves_nothing_running_and_both_can_be_repeated() {
    let folder = Folder::new("down");
    folder.windlass_ok(&["up", "--with", "memcached", "--sample", "--detach"]);
    let cluster = pid_of(&folder);
    let again = folder.windlass_ok(&["up", "--with", "memcached", "--detach"]);
    assert!(again.contains("runs already"), "{again}");
    assert_eq!(pid_of(&folder), cluster);
    let pods: Vec<i32> = ready_pods(&folder.status())
        .iter()
        .filter_map(|(_, ip)| memcached_pid(ip))
        .collect();
    assert_eq!(pods.len(), 3);
    folder.windlass_ok(&["down"]);
    assert!(!exists(cluster) && pods.iter().all(|pid| !exists(*pid)));
    assert!(folder.windlass_ok(&["down"]).contains("no cluster runs"));
    let status = folder.windlass(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&status.stderr).contains("start one with `windlass up`"));
}

#[test]
fn killed_with_9_and_started_again_no_process_is_left_twice() {
    let folder = Folder::new("kill9");
    folder.windlass_ok(&["up", "--with", "memcached", "--sample", "--detach"]);
    let address = folder.status()["address"].clone();
    let old: Vec<i32> = ready_pods(&folder.status())
        .iter()
        .filter_map(|(_, ip)| memcached_pid(ip))
        .collect();
    signal("KILL", pid_of(&folder));
    folder.windlass_ok(&["up", "--with", "memcached", "--sample", "--detach"]);
    assert_eq!(
        folder.status()["address"],
        address,
        "an old kubeconfig goes on working"
    );
    let new: Vec<i32> = ready_pods(&folder.status())
        .iter()
        .filter_map(|(_, ip)| memcached_pid(ip))
        .collect();
    assert_eq!((old.len(), new.len()), (3, 3));
    assert!(old.iter().all(|pid| !exists(*pid)), "{old:?} are left over");
}

#[test]
fn killed_with_9_down_ends_what_it_left_behind() {
    let folder = Folder::new("kill9-down");
    folder.windlass_ok(&["up", "--with", "memcached", "--sample", "--detach"]);
    let pods: Vec<i32> = ready_pods(&folder.status())
        .iter()
        .filter_map(|(_, ip)| memcached_pid(ip))
        .collect();
    assert_eq!(pods.len(), 3);
    signal("KILL", pid_of(&folder));
    folder.windlass_ok(&["down"]);
    assert!(
        pods.iter().all(|pid| !exists(*pid)),
        "{pods:?} are left over"
    );
}

#[test]
fn without_the_kubeconfigs_credentials_nobody_gets_in() {
    let folder = Folder::new("auth");
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    assert_eq!(curl(&folder, &["/readyz"]), "ok");
    let anonymous = curl(&folder, &["/api/v1/namespaces/default/secrets"]);
    assert!(
        anonymous.contains("system:anonymous") && anonymous.contains("\"code\":403"),
        "{anonymous}"
    );
    let forged = curl(
        &folder,
        &["--header", "Authorization: Bearer forged", "/api/v1/pods"],
    );
    assert!(forged.contains("\"code\":401"), "{forged}");
    // Another cluster's certificate is nobody's here.
    let other = Folder::new("auth-other");
    other.windlass_ok(&["up", "--no-node", "--detach"]);
    let pki = other.path().join(".windlass/pki");
    let (cert, key) = (pki.join("admin.crt"), pki.join("admin.key"));
    let foreign = [
        "--cert",
        cert.to_str().expect("a path"),
        "--key",
        key.to_str().expect("a path"),
        "/api/v1/pods",
    ];
    let refused = curl(&folder, &foreign);
    assert!(!refused.contains("PodList"), "{refused}");
    // The kubeconfig is its user's alone, and so is what it was made from.
    for file in ["kubeconfig", "pki/ca.key", "pki/admin.key"] {
        let mode = std::fs::metadata(folder.path().join(".windlass").join(file))
            .expect(file)
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file} can be read by others: {mode:o}");
    }
}
