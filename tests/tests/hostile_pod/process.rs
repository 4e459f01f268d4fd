//! Plain processes: nothing keeps them apart, but the node must not do their work for them.

use serde_json::json;

use crate::host::{Host, script};
use crate::resources::size;

#[test]
fn node_removes_and_writes_nothing_for_a_process_that_it_may_not() {
    let host = Host::processes("process");
    host.folder
        .kubectl(&["create", "configmap", "settings", "--from-literal=key=1"]);
    host.folder.kubectl(&[
        "create",
        "secret",
        "generic",
        "keys",
        "--from-literal=key=1",
    ]);
    let volumes = json!([
        {"name": "data", "emptyDir": {}},
        {"name": "map", "configMap": {"name": "settings"}},
        {"name": "secret", "secret": {"secretName": "keys"}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}]}},
        {"name": "labels", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]);
    let attack = format!(
        "for volume in $WINDLASS_VOLUME_MAP $WINDLASS_VOLUME_LABELS $WINDLASS_VOLUME_SECRET \
           $WINDLASS_VOLUME_ALL $WINDLASS_SERVICE_ACCOUNT; do \
           ln -sfn {0} $volume/..data; ln -sfn {0} $volume/..data_tmp; ln -sfn {0}/keys $volume/new; \
           rm -f $volume/key; ln -sfn {0}/keys/id $volume/key; done; \
         ln -sfn {0} $WINDLASS_VOLUME_DATA/link; \
         rm -f $WINDLASS_TERMINATION_MESSAGE_PATH; \
         ln -sfn {0}/keys/id $WINDLASS_TERMINATION_MESSAGE_PATH; sleep 0.2; exit 1",
        host.tree.display()
    );
    let main = script("main", &["data", "map", "labels", "secret", "all"], &attack);
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
    let message = host.when("links", "ended", |pod| {
        let status = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
        status.is_object().then(|| status["message"].clone())
    });
    assert!(
        message.is_null(),
        "what a link leads to is no message: {message}"
    );
    host.folder.kubectl(&["delete", "pod", "links"]);

    // Part of a volume, behind a link.
    let mut first = script(
        "first",
        &["data"],
        &format!("ln -s {} $WINDLASS_VOLUME_DATA/link", host.tree.display()),
    );
    first["name"] = json!("first");
    let mut second = script("main", &[], "true");
    second["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/part", "subPath": "link/made"}]);
    host.pod(
        "part",
        json!({"initContainers": [first], "containers": [second], "volumes": [{"name": "data", "emptyDir": {}}]}),
    );
    let message = host.when("part", "refused", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        (waiting["reason"] == "CreateContainerConfigError").then(|| waiting["message"].clone())
    });
    assert_eq!(message, "subPath \"link/made\" leads out of the volume");

    // Messages of any size.
    let large = script(
        "main",
        &[],
        "truncate -s 12G $WINDLASS_TERMINATION_MESSAGE_PATH; printf end >> $WINDLASS_TERMINATION_MESSAGE_PATH",
    );
    host.pod(
        "message",
        json!({"restartPolicy": "Never", "containers": [large]}),
    );
    let said = host.when("message", "over", |pod| {
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        ended["message"].as_str().map(str::to_owned)
    });
    assert!(
        said.len() == 4096 && said.ends_with("end"),
        "{} bytes",
        said.len()
    );
    host.check();
}

#[test]
fn output_and_messages_without_end_cost_the_cluster_nothing() {
    let host = Host::processes("process-floods");
    let once = |name: &str, text: &str| {
        let main = script("main", &["data"], text);
        let volumes = json!([{"name": "data", "emptyDir": {}}]);
        let spec = json!({"restartPolicy": "Never", "containers": [main], "volumes": volumes});
        host.pod(name, spec);
    };
    once(
        "log",
        "head -c 80000000 /dev/zero | tr '\\0' x | fold -w 8000; echo end",
    );
    // Nobody ever writes to it.
    once(
        "pipe",
        "rm -f $WINDLASS_TERMINATION_MESSAGE_PATH; mkfifo $WINDLASS_TERMINATION_MESSAGE_PATH; echo end",
    );
    once(
        "deep",
        "python3 -c \"\
import os\n\
os.chdir(os.environ['WINDLASS_VOLUME_DATA'])\n\
for n in range(3000): os.mkdir('d'); os.chdir('d')\n\"; echo end",
    );
    for name in ["log", "pipe", "deep"] {
        assert!(host.output(name).ends_with("end\n"), "{name}");
    }
    let logs = size(&host.folder.path().join(".windlass/node/pods"));
    assert!(logs < 60_000_000, "{logs} bytes are kept");
    host.folder
        .kubectl(&["delete", "pod", "log", "pipe", "deep"]);
    let volumes = host.folder.path().join(".windlass/node/volumes");
    windlass_tests::eventually("the end of every volume", || {
        (std::fs::read_dir(&volumes).is_ok_and(|entries| entries.count() == 0)).then_some(())
    });
    host.check();
}
