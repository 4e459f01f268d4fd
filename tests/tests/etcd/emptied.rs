//! Data folders emptied under living pods: kubelet starts their containers again, and etcd must not.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::signal_etcd;
use crate::stage::{Stage, condition, on_volumes};

/// Empties the data folder of a member, whose container is then started again.
fn empty(stage: &Stage, pod: &str) {
    // An etcd that notices at once ends, and with it the shell.
    let remove = "rm -rf /var/etcd/data";
    stage
        .folder
        .run_kubectl(&["exec", pod, "--", "sh", "-c", remove]);
    signal_etcd(stage, pod, Signal::KILL);
}

/// Why the container of a pod ended the last time.
fn last_words(stage: &Stage, pod: &str) -> Option<String> {
    let pods = stage.pods("c");
    let pod = pods.iter().find(|one| one["metadata"]["name"] == pod)?;
    let container = &pod["status"]["containerStatuses"][0];
    let ends = ["state", "lastState"].map(|state| &container[state]["terminated"]);
    let end = ends.into_iter().find(|end| !end.is_null())?;
    end["message"].as_str().map(str::to_owned)
}

/// Whether etcd in a pod has ended because there was no data in its folder.
fn refuses(stage: &Stage, pod: &str) -> bool {
    last_words(stage, pod).is_some_and(|words| words.contains("couldn't find local name"))
}

#[test]
fn first_member_with_emptied_folder_begins_no_second_cluster() {
    let Some(stage) = Stage::new("emptied-first") else {
        return;
    };
    for (name, spec) in [("c", json!({ "size": 3 })), ("v", on_volumes(3))] {
        let writer = stage.build(name, &spec);
        let first = stage.members(name).remove(0);
        let begun = stage.status(name)["clusterID"].clone();
        empty(&stage, &first);
        stage.until("its replacement", || {
            (!stage.members(name).contains(&first)).then_some(())
        });
        stage.well(name, 3);
        assert!(
            stage
                .events(name, "RemovingMember")
                .contains("it is not started without its data")
        );
        assert_eq!(stage.status(name)["clusterID"], begun);
        stage.progress(&writer);
        writer.finish();
    }
}

/// Two members have a write. The newest, whose flags name the members as they are, forgets it; the
/// leader hangs. The third, which lags, must not be elected: no majority is the right outcome.
#[test]
fn member_without_its_data_does_not_vote() {
    let Some(stage) = Stage::new("emptied-vote") else {
        return;
    };
    // A client that waits for long: nothing is acknowledged without a majority.
    let writer = stage.build("c", &json!({ "size": 3, "replaceAfterSeconds": 3600 }));
    let members = stage.members("c");
    let [leader, behind, newest] = &members[..] else {
        panic!("{members:?}");
    };
    let id = id_of(&stage, leader);
    stage.until("the first member leads", || {
        stage.etcdctl("c", &["move-leader", &id]);
        (stage.leader("c") == *leader).then_some(())
    });
    // What the operator would do about it has its own tests.
    stage.patch("c", &json!({ "paused": true }));
    stage.until("the pause", || {
        (stage.status("c")["phase"] == "Paused").then_some(())
    });
    signal_etcd(&stage, behind, Signal::STOP);
    stage.progress(&writer);
    let put = stage.try_etcdctl(leader, &["put", "decided", "by-two"]);
    assert!(put.status.success(), "{put:?}");
    signal_etcd(&stage, leader, Signal::STOP);
    empty(&stage, newest);
    signal_etcd(&stage, behind, Signal::CONT);
    stage.until(&format!("etcd of {newest} refuses to start empty"), || {
        let read = stage.try_etcdctl(behind, &["get", "decided"]);
        assert!(!read.status.success(), "it serves: {read:?}");
        refuses(&stage, newest).then_some(())
    });
    let read = stage.try_etcdctl(behind, &["get", "decided"]);
    assert!(!read.status.success(), "it serves: {read:?}");
    signal_etcd(&stage, leader, Signal::CONT);
    stage.until("the two that remember are a majority", || {
        let read = stage.try_etcdctl(behind, &["get", "decided", "--print-value-only"]);
        let value = String::from_utf8_lossy(&read.stdout).trim().to_owned();
        (value == "by-two").then_some(())
    });
    stage.patch("c", &json!({ "paused": false, "replaceAfterSeconds": 300 }));
    stage.until("the replacement of the one that forgot", || {
        (!stage.members("c").contains(newest)).then_some(())
    });
    stage.well("c", 3);
    writer.finish();
}

#[test]
fn single_member_with_emptied_folder_is_not_started_empty() {
    let Some(stage) = Stage::new("emptied-single") else {
        return;
    };
    let volume = json!({ "size": 1, "storage": { "size": "64Mi" } });
    for (name, spec) in [("c", json!({ "size": 1 })), ("v", volume)] {
        // Read back before: afterwards nothing is left to be read.
        stage.build(name, &spec).finish();
        let only = stage.members(name).remove(0);
        empty(&stage, &only);
        let told = stage.told(name, "Degraded", "QuorumLost");
        assert!(
            told.contains("the data of 1 of 1 members is gone")
                && told.contains("no empty one is started in its place"),
            "{told}"
        );
        let status = stage.status(name);
        assert_eq!(status["phase"], "Failed");
        assert_eq!(condition(&status, "Available")["status"], "False");
        assert_eq!(stage.members(name), [only]);
        let ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut ready = conditions.into_iter().flatten();
            ready.any(|one| one["type"] == "Ready" && one["status"] == "True")
        };
        assert!(!stage.pods(name).iter().any(ready));
    }
}

/// The id of a member, as `etcdctl` has it.
fn id_of(stage: &Stage, member: &str) -> String {
    let status = stage.status("c");
    let mut roster = status["roster"].as_array().expect("a roster").iter();
    let found = roster.find(|one| one["name"] == member);
    found.expect("a member")["id"]
        .as_str()
        .expect("an id")
        .to_owned()
}
