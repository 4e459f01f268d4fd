//! Links in volumes, while the node and the OCI runtime work in them.

use std::fs;

use serde_json::{Value, json};

use crate::host::{CANARY, Host, script};

/// A container that sees a part of the volume, and says `LEAK` when that is the host's.
fn looking(path: &str) -> Value {
    let look = "if ls -la /part /part/* | grep -E 'keys|kubeconfig|passwd'; then echo LEAK; fi; \
                cat /part/file; echo x > /part/made; echo done";
    let mut container = script("main", &[], look);
    container["volumeMounts"] = json!([{"name": "data", "mountPath": "/part", "subPath": path}]);
    container
}

#[test]
fn sub_path_through_links_never_shows_or_changes_the_host() {
    let Some(host) = Host::sandbox("sub-path") else {
        return;
    };
    // A folder that pods share, and in which one of them never rests.
    let shared = host.folder.path().join("shared");
    fs::create_dir(&shared).expect("a folder");
    let volumes = json!([{"name": "data", "hostPath": {"path": shared}}]);
    let target = host.tree.display();
    let race = format!(
        "import os\n\
         os.chdir('/data')\n\
         os.mkdir('away')\n\
         os.symlink('{target}', 'link')\n\
         os.symlink('../../../../../../../..{target}', 'upwards')\n\
         os.mkdir('race')\n\
         print('ready', flush=True)\n\
         while True:\n\
         \u{20}   os.rename('race', 'away/race'); os.symlink('{target}', 'race')\n\
         \u{20}   os.unlink('race'); os.rename('away/race', 'race')\n"
    );
    let mut racer = script("main", &["data"], "");
    racer["command"] = json!(["python3", "-c", race]);
    host.pod("racer", json!({"containers": [racer], "volumes": volumes}));
    host.when("racer", "running", |pod| {
        (pod["status"]["phase"] == "Running").then_some(())
    });
    windlass_tests::eventually("the race", || {
        (host.folder.kubectl(&["logs", "racer"]) == "ready\n").then_some(())
    });
    for path in ["link", "link/made", "link/open/made", "upwards/keys"] {
        let name = path.replace('/', "-");
        let spec = json!({
            "restartPolicy": "Never", "containers": [looking(path)], "volumes": volumes,
        });
        host.pod(&name, spec);
        let message = host.when(&name, "refused", |pod| {
            let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
            (waiting["reason"] == "CreateContainerConfigError")
                .then(|| waiting["message"].as_str().unwrap_or_default().to_owned())
        });
        assert_eq!(
            message,
            format!("subPath \"{path}\" leads out of the volume")
        );
        host.folder
            .kubectl(&["delete", "pod", &name, "--wait=false"]);
    }
    // Between the node's look and the mount there is time; sooner or later one meets it.
    for number in 0..20 {
        let path = if number % 2 == 0 { "race" } else { "race/made" };
        let spec = json!({
            "restartPolicy": "Never", "containers": [looking(path)], "volumes": volumes,
        });
        host.pod(&format!("look-{number}"), spec);
    }
    for number in 0..20 {
        let name = format!("look-{number}");
        // It ran, in the volume, or it could not be made.
        host.when(&name, "decided", |pod| {
            let state = &pod["status"]["containerStatuses"][0]["state"];
            let waits = state["waiting"]["reason"].as_str();
            let is_decided = waits.is_some_and(|reason| reason != "ContainerCreating")
                || !state["terminated"].is_null();
            is_decided.then_some(())
        });
        let logs = host.folder.run_kubectl(&["logs", &name]);
        let said = String::from_utf8_lossy(&logs.stdout);
        assert!(
            !said.contains("LEAK") && !said.contains(CANARY),
            "{name}: {said}"
        );
    }
    host.check();
}

#[test]
fn links_that_a_container_leaves_lead_the_nodes_work_nowhere() {
    let Some(host) = Host::sandbox("links") else {
        return;
    };
    host.folder
        .kubectl(&["create", "configmap", "settings", "--from-literal=key=1"]);
    host.folder.kubectl(&[
        "create",
        "secret",
        "generic",
        "keys",
        "--from-literal=key=1",
    ]);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    });
    fs::write(host.folder.path().join("disk.json"), claim.to_string()).expect("a file");
    host.folder.kubectl(&["create", "-f", "disk.json"]);
    let shared = host.folder.path().join("shared");
    fs::create_dir(&shared).expect("a folder");
    let volumes = json!([
        {"name": "data", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}},
        {"name": "shared", "hostPath": {"path": shared}},
        {"name": "map", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "keys"}},
        {"name": "labels", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "all", "projected": {"sources": [
            {"configMap": {"name": "settings"}}, {"serviceAccountToken": {"path": "token"}}]}},
    ]);
    // Restarted, so that the node prepares its volumes again; what it left is removed with the pod.
    let attack = format!(
        "exec 2>/dev/null; for volume in /data /memory /disk /shared; do cd $volume; ln -sfn {0} ..data; \
           ln -sfn {0} ..data_tmp; ln -sfn {0} link; ln -sfn {0}/keys/id file; mkfifo pipe; \
           mkdir -p deep; ln -sfn {0} deep/link; echo made > made; done; cd /; \
         for volume in /map /secret /labels /all /var/run/secrets/kubernetes.io/serviceaccount; do \
           for name in ..data ..data_tmp key new; do ln -sfn {0} $volume/$name && echo LEAK; done; \
           mv $volume/..data $volume/away && echo LEAK; done; \
         rm -f /dev/termination-log; ln -sfn {0} /dev/termination-log; sleep 0.2; echo done; exit 1",
        host.tree.display()
    );
    let names = [
        "data", "memory", "disk", "shared", "map", "secret", "labels", "all",
    ];
    let main = script("main", &names, &attack);
    host.pod("links", json!({"containers": [main], "volumes": volumes}));
    host.restarted("links", 1);
    host.folder.kubectl(&[
        "patch",
        "configmap",
        "settings",
        "-p",
        r#"{"data":{"key":"2"}}"#,
    ]);
    host.restarted("links", 2);
    let said = host.folder.kubectl(&["logs", "links", "--previous"]);
    assert_eq!(said, "done\n");
    // Each was there to be written to.
    assert!(shared.join("made").exists());
    host.folder.kubectl(&["delete", "pod", "links"]);
    // With the claim its folder goes, links and all.
    host.folder.kubectl(&["delete", "pvc", "disk"]);
    windlass_tests::eventually("the end of the volume", || {
        let left = host.folder.kubectl(&["get", "pv", "-o", "name"]);
        left.is_empty().then_some(())
    });
    host.check();
}
