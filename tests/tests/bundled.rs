//! The operators that come with the command, all at once, with their samples.

use serde_json::Value;
use windlass_tests::{Folder, memcached_pid, memcached_pid_at};

/// The pods with a label, as kubectl shows them.
fn pods(folder: &Folder, label: &str) -> Vec<Value> {
    let list = folder.kubectl(&["get", "pods", "-l", label, "-o", "json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    list["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn samples_of_all_bundled_operators_run_and_tell_how_they_are() {
    let folder = Folder::new("bundled");
    folder.windlass_ok(&[
        "up",
        "--runtime",
        "process",
        "--with",
        "demo,kubewatch,memcached,sidecarset,usage",
        "--sample",
        "--detach",
    ]);

    // A Demo with its columns; a configuration that changes replaces its pods.
    let shown = folder.kubectl(&["get", "demoes"]);
    assert!(
        shown.contains("TYPE") && shown.contains("DEGRADED"),
        "{shown}"
    );
    let before = pods(&folder, "app.kubernetes.io/name=demo");
    assert_eq!(before.len(), 3);
    let data = r#"{"data":{"greeting":"good evening"}}"#;
    folder.kubectl(&["patch", "configmap", "demo", "--type=merge", "-p", data]);
    folder.until("three new pods", |_| {
        let now = pods(&folder, "app.kubernetes.io/name=demo");
        let is_new = |pod: &Value| {
            let same = |old: &Value| old["metadata"]["uid"] == pod["metadata"]["uid"];
            !before.iter().any(same) && pod["status"]["phase"] == "Running"
        };
        (now.len() == 3 && now.iter().all(is_new)).then_some(())
    });
    let refused = folder.kubectl_fails(&[
        "patch",
        "demo",
        "demo-sample",
        "--type=merge",
        "-p",
        r#"{"spec":{"type":"redis"}}"#,
    ]);
    assert!(refused.contains("type is immutable"), "{refused}");

    // A Watch names its handlers, and a Report the end of the hour that it counts.
    let watches = folder.kubectl(&["get", "watches", "--no-headers"]);
    assert!(watches.contains("webhook"), "{watches}");
    let reports = folder.kubectl(&["get", "reports", "--no-headers"]);
    assert!(
        reports.contains("Hourly") && reports.contains("requests"),
        "{reports}"
    );

    // A Memcached is scaled as a Deployment is.
    folder.kubectl(&["scale", "memcached/example-memcached", "--replicas=1"]);
    folder.until("one node", |_| {
        let nodes = folder.kubectl(&[
            "get",
            "memcached",
            "example-memcached",
            "-o",
            "jsonpath={.status.nodes}",
        ]);
        let nodes: Vec<String> = serde_json::from_str(&nodes).ok()?;
        (nodes.len() == 1).then_some(())
    });
    let told = folder.kubectl(&["get", "events", "--field-selector", "reason=Created"]);
    assert!(told.contains("example-memcached-deployment"), "{told}");

    // Sidecars really run in the pods, beside what the pods run themselves; another image restarts
    // them, and nothing else.
    let injected = pods(&folder, "app=sidecarset-sample");
    assert_eq!(injected.len(), 2);
    let address = injected[0]["status"]["podIP"].as_str().expect("an address");
    let main = memcached_pid(address).expect("the pod's own answers");
    let sidecar = memcached_pid_at(address, 11212).expect("the sidecar answers");
    assert_ne!(main, sidecar);
    let image = r#"[{"op":"replace","path":"/spec/containers/0/image","value":"memcached:1.6"}]"#;
    folder.kubectl(&[
        "patch",
        "sidecarset",
        "sidecarset-sample",
        "--type=json",
        "-p",
        image,
    ]);
    folder.until("both pods upgraded", |_| {
        let counts = "jsonpath={.status.updatedReadyPods}/{.status.matchedPods}";
        let counts = folder.kubectl(&["get", "sidecarset", "sidecarset-sample", "-o", counts]);
        (counts == "2/2").then_some(())
    });
    assert_eq!(memcached_pid(address), Some(main));
    let after = memcached_pid_at(address, 11212).expect("the sidecar answers again");
    assert_ne!(after, sidecar);
    let shown = folder.kubectl(&["get", "sidecarsets"]);
    assert!(
        shown.contains("MATCHED") && shown.contains("UPDATED"),
        "{shown}"
    );
}
