//! Operators deployed by their committed manifests: each finds the API server, its token and the CA
//! as any pod does, and works with the role it was generated and nothing else.

mod demo;
mod memcached;
mod sidecarset;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_tests::machine::is_root;
use windlass_tests::{Folder, program};

/// A file of an operator.
fn file(operator: &str, path: &str) -> String {
    let operators = Path::new(env!("CARGO_MANIFEST_DIR")).join("../operators");
    let file = operators.join(operator).join(path);
    file.to_str().expect("a path").to_owned()
}

/// A folder with a cluster in it that runs one operator as a pod.
struct Deployed {
    folder: Folder,
    /// The operator's name, and its Deployment's, image's and account's.
    name: String,
    namespace: String,
}

impl Deployed {
    /// Starts a cluster and deploys the operator; none where nothing can be sandboxed.
    #[track_caller]
    fn new(operator: &str) -> Option<Self> {
        if !is_root() {
            windlass_skip::skip("sandboxes need root");
            return None;
        }
        let name = format!("{operator}-operator");
        let deployed = Self {
            folder: Folder::new(&format!("{operator}-as-a-pod")),
            namespace: format!("{name}-system"),
            name,
        };
        let data = deployed.folder.path().join(".windlass");
        fs::create_dir_all(&data).expect("a folder can be made");
        // Until it has an image, the image's name stands for the built program.
        let program = deployed.binary();
        let table = format!(
            "{}: {{program: {}, user: 65532}}\n",
            deployed.name,
            program.display()
        );
        fs::write(data.join("images.yaml"), table).expect("a file can be written");
        let folder = &deployed.folder;
        folder.windlass_ok(&["up", "--runtime", "sandbox", "--detach"]);
        folder.kubectl(&[
            "apply",
            "--server-side",
            "-f",
            &file(operator, "dist/install.yaml"),
        ]);
        folder.kubectl(&[
            "wait",
            "--for=condition=Available",
            "--timeout=60s",
            "-n",
            &deployed.namespace,
            &format!("deployment/{}", deployed.name),
        ]);
        Some(deployed)
    }

    fn binary(&self) -> PathBuf {
        let binary = program().with_file_name(&self.name);
        assert!(
            binary.exists(),
            "{} is not built; run `cargo build --workspace --bins`, or scripts/test",
            binary.display()
        );
        binary
    }

    /// The ready pods with a label, outside the operator's namespace.
    fn ready(&self, label: &str) -> Vec<Value> {
        let list = self
            .folder
            .kubectl(&["get", "pods", "-l", label, "-o", "json"]);
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let is_ready = |pod: &&Value| {
            let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
            pod["metadata"]["deletionTimestamp"].is_null()
                && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
        };
        let pods = list["items"].as_array().into_iter().flatten();
        pods.filter(is_ready).cloned().collect()
    }

    /// Waits until so many pods with a label are ready.
    fn until_ready(&self, label: &str, many: usize) -> Vec<Value> {
        self.folder
            .until(&format!("{many} ready pods of {label}"), |_| {
                let pods = self.ready(label);
                (pods.len() == many).then_some(pods)
            })
    }

    /// It was refused nothing, may not do everything, and never had to be started again.
    fn did_with_its_rights(&self) {
        let deployment = format!("deployment/{}", self.name);
        let logs = self
            .folder
            .kubectl(&["logs", "-n", &self.namespace, &deployment]);
        assert!(
            !logs.contains("forbidden") && !logs.contains("does not allow"),
            "{logs}"
        );
        let account = format!(
            "--as=system:serviceaccount:{}:{}",
            self.namespace, self.name
        );
        let rights = self.folder.kubectl(&["auth", "can-i", "--list", &account]);
        assert!(!rights.contains("*.*"), "it may do everything: {rights}");
        let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
        let pods = self
            .folder
            .kubectl(&["get", "pods", "-n", &self.namespace, "-o", "json"]);
        let pods: Value = serde_json::from_str(&pods).expect("JSON");
        let pods = pods["items"].as_array().expect("pods").iter();
        assert_eq!(pods.filter_map(restarts).sum::<i64>(), 0, "{logs}");
    }
}

fn address(pod: &Value) -> &str {
    pod["status"]["podIP"].as_str().expect("an address")
}
