//! An operator deployed by its committed manifests: it finds the API server, its token and the CA as
//! any pod does, and works with the role it was generated.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_tests::machine::is_root;
use windlass_tests::{Folder, memcached_pid, program, ready_pods};

const SAMPLE: &str = "
apiVersion: cache.example.com/v1
kind: Memcached
metadata: {name: deployed}
spec: {size: 2}
";

fn operators() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../operators")
}

/// Deploys the memcached operator and has it make two servers.
fn deploys(folder: &Folder, runtime: &str) {
    let binary = program().with_file_name("memcached-operator");
    assert!(
        binary.exists(),
        "{} is not built; run `cargo build --workspace --bins`, or scripts/test",
        binary.display()
    );
    let data = folder.path().join(".windlass");
    fs::create_dir_all(&data).expect("a folder can be made");
    // Until it has an image, the image's name stands for the built program.
    let table = format!(
        "memcached-operator: {{program: {}, user: 65532}}\n",
        binary.display()
    );
    fs::write(data.join("images.yaml"), table).expect("a file can be written");
    folder.windlass_ok(&["up", "--runtime", runtime, "--detach"]);
    let manifests = operators().join("memcached/dist/install.yaml");
    let manifests = manifests.to_str().expect("a path");
    folder.kubectl(&["apply", "--server-side", "-f", manifests]);
    folder.kubectl(&[
        "wait",
        "--for=condition=Available",
        "--timeout=60s",
        "-n",
        "memcached-operator-system",
        "deployment/memcached-operator",
    ]);
    fs::write(folder.path().join("sample.yaml"), SAMPLE).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "sample.yaml"]);
    let pods = folder.until("the servers' readiness", |status| {
        let of_it = |(name, _): &(String, String)| name.starts_with("deployed");
        let pods: Vec<(String, String)> = ready_pods(status).into_iter().filter(of_it).collect();
        (pods.len() == 2).then_some(pods)
    });
    for (name, address) in &pods {
        assert!(memcached_pid(address).is_some(), "{name} at {address}");
    }
    folder.until("the operator's report", |status| {
        let resource = &status["customResources"][0];
        let nodes = resource["status"]["nodes"].as_array().map_or(0, Vec::len);
        (nodes == 2 && resource["metadata"]["name"] == "deployed").then_some(())
    });
    let logs = folder.kubectl(&[
        "logs",
        "-n",
        "memcached-operator-system",
        "deployment/memcached-operator",
    ]);
    assert!(!logs.contains("forbidden"), "{logs}");
    let user = folder.kubectl(&[
        "auth",
        "can-i",
        "--list",
        "--as=system:serviceaccount:memcached-operator-system:memcached-operator",
    ]);
    assert!(!user.contains("*.*"), "it may do everything: {user}");
    let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
    let status = folder.status();
    let pods = status["pods"].as_array().expect("pods").iter();
    assert_eq!(pods.filter_map(restarts).sum::<i64>(), 0, "{status:#}");
}

#[test]
fn in_a_sandbox() {
    if is_root() {
        deploys(&Folder::new("operator-sandbox"), "sandbox");
    } else {
        eprintln!("operator_as_a_pod::in_a_sandbox WAS NOT RUN: sandboxes need root");
    }
}
