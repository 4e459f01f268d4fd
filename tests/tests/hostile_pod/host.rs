//! A cluster, what is around it on the machine, and whether that stays as it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_tests::machine::{is_root, megabytes};
use windlass_tests::{Folder, eventually};

/// What no pod may ever see.
pub(crate) const CANARY: &str = "canary-of-the-host";
/// How much more memory a hostile pod may cost the cluster, in MB.
const MEMORY: f64 = 300.0;

/// A cluster beside a tree of the host.
pub(crate) struct Host {
    pub(crate) folder: Folder,
    /// Everything below is the host's.
    pub(crate) tree: PathBuf,
    before: BTreeMap<PathBuf, String>,
    pid: String,
    memory: f64,
    asking: Option<Asking>,
}

impl Host {
    /// Starts a cluster of sandboxes; none where there can be none.
    #[track_caller]
    pub(crate) fn sandbox(test: &str) -> Option<Self> {
        if is_root() {
            return Some(Self::new(test, "sandbox"));
        }
        windlass_skip::skip("sandboxes need root");
        None
    }

    /// Starts a cluster of plain processes.
    pub(crate) fn processes(test: &str) -> Self {
        Self::new(test, "process")
    }

    fn new(test: &str, runtime: &str) -> Self {
        let folder = Folder::new(&format!("hostile-{test}"));
        let tree = folder.path().join("host");
        prepare(&tree);
        let kubeconfig = tree.join("kubeconfig");
        let data = folder.path().join(".windlass");
        fs::create_dir(&data).expect("a folder");
        let out = kubeconfig.to_string_lossy().into_owned();
        folder.windlass_ok(&[
            "up",
            "--runtime",
            runtime,
            "--detach",
            "--kubeconfig-out",
            &out,
        ]);
        // Other tools of these tests look for it there.
        symlink(&kubeconfig, data.join("kubeconfig")).expect("a link");
        let pid = folder.status()["pid"].to_string();
        eventually("the default account", || {
            let account = folder.run_kubectl(&["get", "serviceaccount", "default"]);
            account.status.success().then_some(())
        });
        Self {
            before: checksum(&tree),
            memory: megabytes(&pid, "VmHWM:"),
            asking: Some(Asking::start(&out, folder.path())),
            folder,
            tree,
            pid,
        }
    }

    /// Creates a pod. Its containers are root unless they say otherwise.
    pub(crate) fn pod(&self, name: &str, mut spec: Value) {
        spec["terminationGracePeriodSeconds"] = json!(0);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec,
        });
        let file = format!("{name}.json");
        fs::write(self.folder.path().join(&file), pod.to_string()).expect("a file");
        self.folder.kubectl(&["create", "-f", &file]);
    }

    /// Waits until something about a pod is as it should be.
    pub(crate) fn when<T>(&self, name: &str, what: &str, is: impl Fn(&Value) -> Option<T>) -> T {
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        let begun = Instant::now();
        loop {
            let text = self.folder.kubectl(&["get", "--raw", &path]);
            let pod: Value = serde_json::from_str(&text).expect("a pod");
            if let Some(found) = is(&pod) {
                return found;
            }
            let waited = begun.elapsed();
            assert!(
                waited < Duration::from_mins(3),
                "pod {name} is not {what}: {pod:#}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits for a pod's end, and gives what its container has written.
    pub(crate) fn output(&self, name: &str) -> String {
        self.when(name, "over", |pod| {
            let phase = pod["status"]["phase"].as_str()?;
            matches!(phase, "Succeeded" | "Failed").then_some(())
        });
        self.folder.kubectl(&["logs", name])
    }

    /// Waits until a container has been started so many times again.
    pub(crate) fn restarted(&self, name: &str, times: i64) {
        self.when(name, "restarted", |pod| {
            let status = &pod["status"]["containerStatuses"][0];
            (status["restartCount"].as_i64()? >= times).then_some(())
        });
    }

    /// The tree of the host is as it was, the API server has answered all the while, and the
    /// cluster has not grown.
    pub(crate) fn check(mut self) {
        assert_eq!(checksum(&self.tree), self.before, "the host was changed");
        if let Some(asking) = self.asking.take() {
            asking.stop();
        }
        let grown = megabytes(&self.pid, "VmHWM:") - self.memory;
        assert!(grown < MEMORY, "the cluster has grown by {grown} MB");
        assert_eq!(
            self.folder.status()["pid"].to_string(),
            self.pid,
            "it was restarted"
        );
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(asking) = self.asking.take() {
            asking.over.store(true, Ordering::Relaxed);
        }
    }
}

/// A thread that asks the API server again and again.
pub(crate) struct Asking {
    over: Arc<AtomicBool>,
    failed: Arc<AtomicU32>,
    thread: JoinHandle<u32>,
}

impl Asking {
    fn start(kubeconfig: &str, folder: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let failed = Arc::new(AtomicU32::new(0));
        let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
        let (kubeconfig, cache) = (kubeconfig.to_owned(), folder.join("asking"));
        let (done, wrong) = (over.clone(), failed.clone());
        // On the same network as the thread that starts it.
        let thread = std::thread::spawn(move || {
            let mut asked = 0;
            while !done.load(Ordering::Relaxed) {
                let answer = Command::new(&kubectl)
                    .args(["get", "--raw", "/readyz", "--request-timeout=60s"])
                    .env("KUBECONFIG", &kubeconfig)
                    .env("KUBECACHEDIR", &cache)
                    .output();
                let is_ok = answer.is_ok_and(|answer| answer.stdout == b"ok");
                if !is_ok && !done.load(Ordering::Relaxed) {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
                asked += 1;
                std::thread::sleep(Duration::from_millis(500));
            }
            asked
        });
        Self {
            over,
            failed,
            thread,
        }
    }

    fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        let asked = self.thread.join().expect("the thread that asks");
        let failed = self.failed.load(Ordering::Relaxed);
        assert_eq!(failed, 0, "of {asked} questions to the API server");
    }
}

/// Makes a tree as a host may have it: keys, another cluster's folder, links, every sort of mode.
fn prepare(tree: &Path) {
    for folder in ["keys", "other/.windlass/credentials", "open", "empty"] {
        fs::create_dir_all(tree.join(folder)).expect("a folder");
    }
    for file in [
        "keys/id",
        "other/.windlass/credentials/ca.key",
        "open/file",
        "passwd",
    ] {
        let path = tree.join(file);
        fs::write(&path, CANARY).expect("a file");
        let mode = if file.starts_with("open") {
            0o666
        } else {
            0o600
        };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(tree.join("open"), open).expect("a mode");
    symlink("keys/id", tree.join("link")).expect("a link");
}

/// Everything about a tree that may not change.
fn checksum(tree: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the host") {
            let path = entry.expect("an entry").path();
            let facts = fs::symlink_metadata(&path).expect("a file of the host");
            let content = if facts.is_symlink() {
                fs::read_link(&path).expect("a link").display().to_string()
            } else if facts.is_dir() {
                folders.push(path.clone());
                String::new()
            } else {
                format!("{:?}", fs::read(&path).expect("a file"))
            };
            let (mode, owner, group) = (facts.mode(), facts.uid(), facts.gid());
            found.insert(path, format!("{mode:o} {owner} {group} {content}"));
        }
    }
    found
}

/// A container that runs a script as root, with these volumes at `/<name>`.
pub(crate) fn script(name: &str, volumes: &[&str], script: &str) -> Value {
    let mounts: Vec<Value> = volumes
        .iter()
        .map(|name| json!({"name": name, "mountPath": format!("/{name}")}))
        .collect();
    json!({
        "name": name, "image": "busybox", "command": ["sh", "-c", script],
        "volumeMounts": mounts,
    })
}
