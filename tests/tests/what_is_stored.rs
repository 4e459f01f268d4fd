//! What is stored outlives the cluster, however it ended; `down --purge` removes it.

use windlass_tests::{Folder, Signal, exists, signal};

fn apply(folder: &Folder, name: &str) {
    let object = format!(
        r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}, "data": {{"a": "b"}}}}"#
    );
    std::fs::write(folder.path().join("object.json"), object).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "object.json"]);
}

fn uid(folder: &Folder, name: &str) -> String {
    folder.kubectl(&["get", "configmap", name, "-o", "jsonpath={.metadata.uid}"])
}

#[test]
fn what_is_stored_outlives_down_and_kill() {
    let folder = Folder::new("stored");
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    apply(&folder, "first");
    let first = uid(&folder, "first");
    folder.windlass_ok(&["down"]);

    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    assert_eq!(uid(&folder, "first"), first);
    apply(&folder, "second");
    let second = uid(&folder, "second");
    let pid = folder.status()["pid"].as_i64().expect("a process");
    let pid = i32::try_from(pid).expect("a process number");
    signal(pid, Signal::KILL);
    while exists(pid) {
        // A killed process takes a moment to be gone.
        std::thread::yield_now();
    }

    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    assert_eq!(uid(&folder, "first"), first);
    assert_eq!(uid(&folder, "second"), second);

    folder.windlass_ok(&["down", "--purge"]);
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    let left = folder.kubectl(&["get", "configmaps", "-o", "name"]);
    assert!(!left.contains("first"), "{left}");
}

#[test]
fn a_data_folder_that_is_in_use_is_refused() {
    let folder = Folder::new("in-use");
    let data = folder.path().join(".windlass");
    std::fs::create_dir_all(&data).expect("a folder can be made");
    let lock = std::fs::File::create(data.join("lock")).expect("a file can be made");
    lock.lock().expect("it is free");
    for command in [&["up", "--no-node", "--detach"][..], &["down", "--purge"]] {
        let refused = folder.windlass(command);
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            said.contains(".windlass is in use by another windlass"),
            "{said}"
        );
    }
}

#[test]
fn a_store_that_cannot_be_read_is_refused_and_left_as_it_is() {
    let folder = Folder::new("foreign");
    let store = folder.path().join(".windlass/store");
    std::fs::create_dir_all(&store).expect("a folder can be made");
    let log = store.join("00000001.log");
    std::fs::write(&log, "not a log").expect("a file can be written");
    let refused = folder.windlass(&["up", "--no-node", "--detach"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("00000001.log cannot be read: it is not a log of windlass"),
        "{said}"
    );
    assert_eq!(std::fs::read(&log).expect("it is there"), b"not a log");
}
