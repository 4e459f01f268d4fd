//! A cluster of this machine with the etcd operator, and what a test asks of its `EtcdClusters`.

use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_tests::Folder;
use windlass_tests::machine::is_root;

use crate::writer::Writer;

/// How long a cluster may take until it is as wanted.
const PATIENCE: Duration = Duration::from_mins(5);

/// A running `windlass up --with etcd`.
pub(crate) struct Stage {
    pub(crate) folder: Folder,
}

impl Stage {
    /// None where pods cannot have addresses of their own: the test is skipped.
    #[track_caller]
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !is_root() {
            windlass_skip::skip("sandboxes need root");
            return None;
        }
        let folder = Folder::new(&format!("etcd-{test}"));
        folder.windlass_ok(&["up", "--with", "etcd", "--detach"]);
        Some(Self { folder })
    }

    /// Applies an `EtcdCluster`.
    pub(crate) fn apply(&self, name: &str, spec: &Value) -> String {
        let mut spec = spec.clone();
        if spec.get("version").is_none() {
            spec["version"] = "3.4.23".into();
        }
        let cluster = json!({
            "apiVersion": "etcd.database.coreos.com/v1beta2",
            "kind": "EtcdCluster",
            "metadata": { "name": name },
            "spec": spec,
        });
        let file = format!("{name}.json");
        fs::write(self.folder.path().join(&file), cluster.to_string()).expect("a file");
        self.folder.kubectl(&["apply", "-f", &file])
    }

    /// Applies it and waits until it has all its members; then a client begins to write.
    pub(crate) fn build(&self, name: &str, spec: &Value) -> Writer {
        self.apply(name, spec);
        self.well(name, spec["size"].as_i64().expect("a size"));
        self.writer(name)
    }

    pub(crate) fn writer(&self, name: &str) -> Writer {
        let service = format!("{name}-client");
        let address = [
            "get",
            "service",
            &service,
            "-o",
            "jsonpath={.spec.clusterIP}",
        ];
        let writer = Writer::start(&self.folder.kubectl(&address));
        self.progress(&writer);
        writer
    }

    /// Until the client has had more of its writes acknowledged.
    pub(crate) fn progress(&self, writer: &Writer) {
        let before = writer.count();
        self.until("more acknowledged writes", || {
            (writer.count() > before + 10).then_some(())
        });
    }

    pub(crate) fn patch(&self, name: &str, spec: &Value) {
        let patch = json!({ "spec": spec }).to_string();
        self.folder
            .kubectl(&["patch", "etcd", name, "--type=merge", "-p", &patch]);
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        let object = self.folder.kubectl(&["get", "etcd", name, "-o", "json"]);
        let mut object: Value = serde_json::from_str(&object).expect("JSON");
        object["status"].take()
    }

    /// Until the cluster has that many members, all of them ready, and nothing under way.
    pub(crate) fn well(&self, name: &str, size: i64) -> Value {
        self.until(&format!("{name} with {size} members, all well"), || {
            let status = self.status(name);
            let ready = status["members"]["ready"].as_array()?.len();
            let well = status["phase"] == "Running"
                && status["size"] == size
                && i64::try_from(ready) == Ok(size)
                && status["intent"].is_null()
                && condition(&status, "Degraded")["status"] == "False";
            well.then_some(status)
        })
    }

    /// Until a condition is True with that reason; answers its message.
    pub(crate) fn told(&self, name: &str, kind: &str, reason: &str) -> String {
        self.until(&format!("{name} {kind} because of {reason}"), || {
            let status = self.status(name);
            let condition = condition(&status, kind);
            let told = condition["status"] == "True" && condition["reason"] == reason;
            told.then(|| condition["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    pub(crate) fn members(&self, name: &str) -> Vec<String> {
        let status = self.status(name);
        let roster = status["roster"].as_array().cloned().unwrap_or_default();
        let names = roster.iter().filter_map(|member| member["name"].as_str());
        names.map(str::to_owned).collect()
    }

    pub(crate) fn leader(&self, name: &str) -> String {
        self.until(&format!("{name} has a leader"), || {
            self.status(name)["leader"].as_str().map(str::to_owned)
        })
    }

    /// The pods of a cluster.
    pub(crate) fn pods(&self, name: &str) -> Vec<Value> {
        let label = format!("etcd_cluster={name}");
        let list = self
            .folder
            .kubectl(&["get", "pods", "-l", &label, "-o", "json"]);
        let mut list: Value = serde_json::from_str(&list).expect("JSON");
        match list["items"].take() {
            Value::Array(pods) => pods,
            _ => Vec::new(),
        }
    }

    pub(crate) fn kill(&self, pods: &[String]) {
        let mut args = vec![
            "delete",
            "pod",
            "--grace-period=0",
            "--force",
            "--wait=false",
        ];
        args.extend(pods.iter().map(String::as_str));
        self.folder.kubectl(&args);
    }

    /// What `etcdctl` says when it asks the leader. While members have only just met, or a busy
    /// machine has kept them from each other, etcd puts off what it is asked: it is asked again
    /// then.
    pub(crate) fn etcdctl(&self, name: &str, args: &[&str]) -> String {
        const LATER: [&str; 4] = [
            "etcdserver: unhealthy cluster",
            "no leader endpoint given",
            "etcdserver: leader changed",
            "context deadline exceeded",
        ];
        self.until(&format!("etcdctl {args:?}"), || {
            let output = self.try_etcdctl(&self.leader(name), args);
            let said = String::from_utf8_lossy(&output.stderr);
            // An addition that was answered too late has been made all the same.
            let done = output.status.success() || said.contains("Peer URLs already exists");
            let too_soon = LATER.iter().any(|later| said.contains(later));
            assert!(done || too_soon, "{args:?}: {output:?}");
            done.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        })
    }

    /// What `etcdctl` says when it asks the member of a pod.
    pub(crate) fn try_etcdctl(&self, pod: &str, args: &[&str]) -> Output {
        let address = ["get", "pod", pod, "-o", "jsonpath={.status.podIP}"];
        let address = self.folder.kubectl(&address);
        Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints=http://{address}:2379"))
            .args(args)
            .output()
            .expect("etcdctl runs")
    }

    /// The events about a cluster with that reason.
    pub(crate) fn events(&self, name: &str, reason: &str) -> String {
        let selector = format!("involvedObject.name={name},reason={reason}");
        self.folder
            .kubectl(&["get", "events", "--field-selector", &selector])
    }

    pub(crate) fn until<T>(&self, what: &str, mut wanted: impl FnMut() -> Option<T>) -> T {
        let limit = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = wanted() {
                return found;
            }
            if Instant::now() >= limit {
                let args = ["get", "etcd,pods,events", "-o", "wide"];
                println!("{}", self.folder.kubectl(&args));
                println!("{}", self.folder.kubectl(&["get", "etcd", "-o", "yaml"]));
                panic!("{what} did not happen within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// A condition of a status.
pub(crate) fn condition(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut conditions = conditions.filter(|condition| condition["type"] == kind);
    conditions.next().cloned().unwrap_or_default()
}

/// A cluster with a volume for each member.
pub(crate) fn on_volumes(size: i64) -> Value {
    json!({ "size": size, "storage": { "size": "64Mi" } })
}
