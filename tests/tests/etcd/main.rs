//! Etcd clusters of real processes: built, scaled, broken and healed while a client writes.
//!
//! Each scenario ends with every acknowledged write read back, in order. They need root, because
//! members need addresses and names of their own; without it they say so and are passed over.

mod emptied;
mod stage;
mod writer;

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use stage::{Stage, condition, on_volumes};

/// The manifest of the tutorial.
const SEED: &str = r#"apiVersion: "etcd.database.coreos.com/v1beta2"
kind: "EtcdCluster"
metadata:
  name: "example-etcd-cluster"
spec:
  size: 3
  version: "3.2.13"
"#;

#[test]
fn the_manifest_of_the_tutorial_ends_in_what_to_do_and_runs_with_a_version_that_can() {
    let Some(stage) = Stage::new("seed") else {
        return;
    };
    fs::write(stage.folder.path().join("seed.yaml"), SEED).expect("a file");
    stage.folder.kubectl(&["apply", "-f", "seed.yaml"]);
    let name = "example-etcd-cluster";
    let told = stage.told(name, "Degraded", "UnsupportedVersion");
    assert!(
        told.contains("set spec.version to one of these, such as \"3.4.23\""),
        "{told}"
    );
    assert!(stage.pods(name).is_empty());
    stage.patch(name, &json!({ "version": "3.4.23" }));
    stage.well(name, 3);
    let writer = stage.writer(name);
    // Through the Service, by its name, from a pod.
    let pod = stage.members(name).remove(0);
    let endpoint = format!("--endpoints=http://{name}-client:2379");
    let etcdctl = |args: &[&str]| {
        let before = [
            "exec",
            &pod,
            "--",
            "env",
            "ETCDCTL_API=3",
            "etcdctl",
            &endpoint,
        ];
        stage.folder.kubectl(&[&before[..], args].concat())
    };
    etcdctl(&["put", "greeting", "hello"]);
    assert_eq!(
        etcdctl(&["get", "greeting", "--print-value-only"]).trim(),
        "hello"
    );
    assert!(stage.folder.kubectl(&["get", "etcd"]).contains("Running"));
    writer.finish();
}

#[test]
fn create_1_3_5_7() {
    let Some(stage) = Stage::new("create") else {
        return;
    };
    for size in [1, 3, 5, 7] {
        let name = format!("of-{size}");
        let writer = stage.build(&name, &json!({ "size": size }));
        let list = stage.etcdctl(&name, &["member", "list"]);
        assert_eq!(list.lines().count(), size, "{list}");
        let budget = ["get", "pdb", &name, "-o", "jsonpath={.spec.minAvailable}"];
        assert_eq!(stage.folder.kubectl(&budget), (size / 2 + 1).to_string());
        writer.finish();
        stage.folder.kubectl(&["delete", "etcd", &name]);
        stage.until("its pods are gone", || {
            stage.pods(&name).is_empty().then_some(())
        });
    }
}

#[test]
fn pause() {
    let Some(stage) = Stage::new("pause") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 3 }));
    stage.patch("c", &json!({ "paused": true, "size": 5 }));
    let lost = stage.members("c").remove(2);
    stage.until("the pause", || {
        (stage.status("c")["phase"] == "Paused").then_some(())
    });
    stage.kill(std::slice::from_ref(&lost));
    stage.until("the pod's end", || {
        (stage.pods("c").len() == 2).then_some(())
    });
    stage.progress(&writer);
    // A whole look of the operator later there is still nothing but two pods.
    stage.until("the lost member is seen as unready", || {
        let status = stage.status("c");
        let unready = status["members"]["unready"].as_array()?;
        unready.contains(&json!(lost)).then_some(())
    });
    assert_eq!(stage.pods("c").len(), 2);
    stage.patch("c", &json!({ "paused": false }));
    stage.well("c", 5);
    assert!(!stage.members("c").contains(&lost));
    writer.finish();
}

#[test]
fn ready_members_status() {
    let Some(stage) = Stage::new("status") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 3, "replaceAfterSeconds": 600 }));
    let status = stage.status("c");
    assert_eq!(status["members"]["ready"].as_array().map(Vec::len), Some(3));
    assert_eq!(status["currentVersion"], "3.4.23");
    assert_eq!(status["serviceName"], "c-client");
    assert!(
        status["members"]["ready"]
            .as_array()
            .unwrap()
            .contains(&status["leader"])
    );
    // One that hangs is not ready, and said to be so.
    let members = stage.members("c");
    let hangs = members
        .iter()
        .find(|name| json!(name) != status["leader"])
        .unwrap();
    signal_etcd(&stage, hangs, Signal::STOP);
    stage.until("an unready member", || {
        let status = stage.status("c");
        (status["members"]["unready"] == json!([hangs])).then_some(())
    });
    let told = stage.told("c", "Degraded", "MemberUnready");
    assert!(
        told.contains(hangs.as_str()) && told.contains("600 s"),
        "{told}"
    );
    stage.progress(&writer);
    signal_etcd(&stage, hangs, Signal::CONT);
    stage.well("c", 3);
    assert_eq!(stage.members("c"), members, "it came back as it was");
    writer.finish();
}

/// A request of the v2 API in the log keeps etcd 3.6 from starting on it.
#[test]
fn readiness_probe_leaves_no_v2_requests_in_the_log() {
    let Some(stage) = Stage::new("probe") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 1 }));
    let pod = stage.members("c").remove(0);
    let count = "grep -c QGET /var/etcd/data/member/wal/*.wal";
    // Ready, so it has been probed; grep ends with 1 where it finds nothing.
    let output = stage
        .folder
        .run_kubectl(&["exec", &pod, "--", "sh", "-c", count]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    writer.finish();
}

#[test]
fn with_volumes() {
    let Some(stage) = Stage::new("volumes") else {
        return;
    };
    let writer = stage.build("c", &on_volumes(3));
    let members = stage.members("c");
    let claims = stage.folder.kubectl(&["get", "pvc", "-o", "name"]);
    assert_eq!(claims.lines().count(), 3, "{claims}");
    // A pod that goes comes back as the same member.
    stage.kill(&members[..1]);
    stage.until("the pod is another", || {
        let uid = stage.pods("c").iter().any(|pod| {
            pod["metadata"]["name"] == members[0].as_str()
                && pod["metadata"]["deletionTimestamp"].is_null()
        });
        uid.then_some(())
    });
    stage.well("c", 3);
    assert_eq!(stage.members("c"), members);
    writer.finish();
}

#[test]
fn one_member_recovery() {
    let Some(stage) = Stage::new("one") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 3 }));
    let lost = stage.leader("c");
    stage.kill(std::slice::from_ref(&lost));
    stage.until("its replacement", || {
        (!stage.members("c").contains(&lost)).then_some(())
    });
    stage.well("c", 3);
    assert!(stage.events("c", "RemovingMember").contains(&lost));
    writer.finish();
}

#[test]
fn two_of_five_recovery() {
    let Some(stage) = Stage::new("two") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 5 }));
    let members = stage.members("c");
    stage.kill(&members[1..3]);
    stage.until("their replacement", || {
        let now = stage.members("c");
        (!now.contains(&members[1]) && !now.contains(&members[2])).then_some(())
    });
    stage.well("c", 5);
    writer.finish();
}

#[test]
fn resize_3_to_5_to_3() {
    let Some(stage) = Stage::new("resize") else {
        return;
    };
    let writer = stage.build("c", &on_volumes(3));
    let members = stage.members("c");
    stage.patch("c", &json!({ "size": 5 }));
    stage.well("c", 5);
    stage.progress(&writer);
    stage.patch("c", &json!({ "size": 3 }));
    stage.well("c", 3);
    assert_eq!(stage.members("c"), members, "the newest went");
    stage.until("their volumes are gone", || {
        let claims = stage.folder.kubectl(&["get", "pvc", "-o", "name"]);
        (claims.lines().count() == 3).then_some(())
    });
    writer.finish();
}

#[test]
fn resize_3_to_1_to_3() {
    let Some(stage) = Stage::new("resize-1") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 3 }));
    stage.patch("c", &json!({ "size": 1 }));
    stage.well("c", 1);
    stage.progress(&writer);
    stage.patch("c", &json!({ "size": 3 }));
    stage.well("c", 3);
    writer.finish();
}

#[test]
fn all_pods_deleted_with_volumes_come_back_with_every_write() {
    let Some(stage) = Stage::new("all-volumes") else {
        return;
    };
    let writer = stage.build("c", &on_volumes(3));
    let members = stage.members("c");
    stage.kill(&members);
    stage.until("the loss is seen", || {
        let status = stage.status("c");
        (condition(&status, "Available")["status"] == "False").then_some(())
    });
    stage.well("c", 3);
    assert_eq!(
        stage.members("c"),
        members,
        "the same members on the same volumes"
    );
    stage.progress(&writer);
    writer.finish();
}

#[test]
fn all_pods_deleted_without_volumes_are_told_and_nothing_is_started() {
    lost_without_volumes("all", 3, 3);
}

#[test]
fn majority_lost_without_volumes_is_told_and_nothing_is_started() {
    lost_without_volumes("majority", 5, 3);
}

fn lost_without_volumes(test: &str, size: usize, lost: usize) {
    let Some(stage) = Stage::new(test) else {
        return;
    };
    // Read back before: afterwards nobody is left to ask.
    stage.build("c", &json!({ "size": size })).finish();
    let members = stage.members("c");
    stage.kill(&members[..lost]);
    let told = stage.told("c", "Degraded", "QuorumLost");
    assert!(
        told.contains(&format!("the data of {lost} of {size} members is gone")),
        "{told}"
    );
    assert_eq!(stage.status("c")["phase"], "Failed");
    stage.until("an event", || {
        stage
            .events("c", "QuorumLost")
            .contains("restore it")
            .then_some(())
    });
    let left: Vec<Value> = stage
        .pods("c")
        .iter()
        .map(|pod| pod["metadata"]["name"].clone())
        .collect();
    assert!(
        left.iter()
            .all(|name| members[lost..].iter().any(|kept| name == kept.as_str())),
        "{left:?}"
    );
}

#[test]
fn majority_lost_with_volumes_comes_back_with_every_write() {
    let Some(stage) = Stage::new("majority-volumes") else {
        return;
    };
    let writer = stage.build("c", &on_volumes(5));
    let members = stage.members("c");
    stage.kill(&members[..3]);
    stage.until("the pods are back", || {
        let pods = stage.pods("c");
        let going = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
        (pods.len() == 5 && !pods.iter().any(going)).then_some(())
    });
    stage.well("c", 5);
    assert_eq!(stage.members("c"), members);
    stage.progress(&writer);
    writer.finish();
}

#[test]
fn data_folder_corrupted() {
    let Some(stage) = Stage::new("corrupt") else {
        return;
    };
    let writer = stage.build("c", &on_volumes(3));
    let spoilt = stage.leader("c");
    let spoil = "cd /var/etcd/data/member && for f in wal/*.wal snap/db; do head -c 65536 /dev/urandom | dd of=$f conv=notrunc; done";
    // An etcd that notices at once ends, and with it whoever spoils its data.
    stage
        .folder
        .run_kubectl(&["exec", &spoilt, "--", "sh", "-c", spoil]);
    signal_etcd(&stage, &spoilt, Signal::KILL);
    stage.until("its replacement", || {
        (!stage.members("c").contains(&spoilt)).then_some(())
    });
    stage.well("c", 3);
    assert!(stage.events("c", "RemovingMember").contains("has failed"));
    writer.finish();
}

#[test]
fn member_add_timed_out_but_applied() {
    let Some(stage) = Stage::new("add") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 3 }));
    // As it is when the answer to the call is lost and the operator dies: the intent is recorded,
    // etcd knows the member, and nobody has told the operator.
    stage.patch("c", &json!({ "paused": true, "size": 5 }));
    stage.until("the pause", || {
        (stage.status("c")["phase"] == "Paused").then_some(())
    });
    let intent = json!({ "status": { "intent": { "action": "Add", "member": "c-lost", "reason": "the cluster has 3 of 5 members" } } });
    stage.folder.kubectl(&[
        "patch",
        "etcd",
        "c",
        "--subresource=status",
        "--type=merge",
        "-p",
        &intent.to_string(),
    ]);
    let url = "--peer-urls=http://c-lost.c.default.svc:2380";
    stage.etcdctl("c", &["member", "add", "c-lost", "--learner", url]);
    stage.patch("c", &json!({ "paused": false }));
    stage.well("c", 5);
    let members = stage.members("c");
    assert_eq!(
        members.iter().filter(|name| *name == "c-lost").count(),
        1,
        "{members:?}"
    );
    let list = stage.etcdctl("c", &["member", "list"]);
    assert_eq!(list.lines().count(), 5, "no ghost: {list}");
    writer.finish();
}

#[test]
fn leader_is_the_one_removed() {
    let Some(stage) = Stage::new("leader") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 3 }));
    let members = stage.members("c");
    let newest = members[2].clone();
    let status = stage.status("c");
    let mut roster = status["roster"].as_array().unwrap().iter();
    let newest_one = roster.find(|one| one["name"] == newest.as_str()).unwrap();
    let id = newest_one["id"].as_str().unwrap();
    stage.until("the newest leads", || {
        stage.etcdctl("c", &["move-leader", id]);
        (stage.leader("c") == newest).then_some(())
    });
    stage.patch("c", &json!({ "size": 2 }));
    stage.well("c", 2);
    assert!(!stage.members("c").contains(&newest));
    assert!(stage.events("c", "MovingLeader").contains(&newest));
    stage.patch("c", &json!({ "size": 3 }));
    stage.well("c", 3);
    writer.finish();
}

#[test]
fn invalid_sizes() {
    let Some(stage) = Stage::new("sizes") else {
        return;
    };
    let writer = stage.build("c", &json!({ "size": 1 }));
    for size in [0, 8, -1] {
        let patch = json!({ "spec": { "size": size } }).to_string();
        let refused =
            stage
                .folder
                .kubectl_fails(&["patch", "etcd", "c", "--type=merge", "-p", &patch]);
        assert!(refused.contains("spec.size"), "{refused}");
    }
    let storage = json!({ "spec": { "storage": { "size": "1Gi" } } }).to_string();
    let refused =
        stage
            .folder
            .kubectl_fails(&["patch", "etcd", "c", "--type=merge", "-p", &storage]);
    assert!(refused.contains("storage cannot be changed"), "{refused}");
    stage.well("c", 1);
    stage.progress(&writer);
    writer.finish();
}

#[test]
fn ten_clusters_at_once_one_of_them_broken() {
    let Some(stage) = Stage::new("ten") else {
        return;
    };
    for at in 0..9 {
        stage.apply(&format!("c{at}"), &json!({ "size": 3 }));
    }
    stage.apply("broken", &json!({ "size": 3, "version": "3.5.99" }));
    let writers: Vec<_> = (0..9)
        .map(|at| {
            let name = format!("c{at}");
            stage.well(&name, 3);
            stage.writer(&name)
        })
        .collect();
    let told = stage.told("broken", "Degraded", "MemberNotStarting");
    assert!(told.contains("etcd is 3.4.23 here"), "{told}");
    for writer in writers {
        writer.finish();
    }
}

/// Sends a signal to etcd in a pod.
pub(crate) fn signal_etcd(stage: &Stage, pod: &str, with: Signal) {
    let address = ["get", "pod", pod, "-o", "jsonpath={.metadata.uid}"];
    let uid = stage.folder.kubectl(&address);
    let oci = stage.folder.path().join(".windlass/node/oci");
    let entries = fs::read_dir(oci)
        .expect("the OCI runtime's state")
        .flatten();
    let entry = entries
        .filter(|entry| entry.file_name().to_string_lossy().contains(&uid))
        .find(|entry| entry.path().join("state.json").exists());
    // It may have ended by itself.
    let Some(entry) = entry else { return };
    let text = fs::read(entry.path().join("state.json")).expect("a state");
    let container: Value = serde_json::from_slice(&text).expect("JSON");
    let pid = container["init_process_pid"].as_i64().expect("a process");
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let sent = kill_process(pid.expect("a process number"), with);
    assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
}
