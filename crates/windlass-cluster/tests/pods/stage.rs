//! A cluster in a folder of its own, and what tests do with it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_cluster::{Cluster, ClusterConfig, NodeSettings, Runtime};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct Stage {
    pub(crate) cluster: Option<Cluster>,
    pub(crate) client: Client,
    pub(crate) folder: PathBuf,
    /// What a test and its containers share ([`Stage::sharing`]); the cluster's own folder is
    /// nobody else's to see.
    pub(crate) shared: PathBuf,
}

impl Stage {
    pub(crate) async fn new(name: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("windlass-pods-{name}-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let shared = folder.with_extension("shared");
        std::fs::create_dir(&shared).expect("a folder");
        let cluster = Cluster::start(ClusterConfig {
            data_dir: folder.clone(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            names: Vec::new(),
            in_memory: false,
            controllers: true,
            node: Some(node()),
        })
        .await
        .expect("a cluster");
        let client = cluster.client().await.expect("a client");
        let stage = Self {
            cluster: Some(cluster),
            client,
            folder,
            shared,
        };
        // Pods are refused until their account is there.
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = stage.api();
        stage
            .until("the default account", || async {
                accounts.get_opt("default").await.expect("an answer")
            })
            .await;
        stage
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        self.cluster.as_ref().expect("a cluster")
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        self.api()
    }

    /// Asks again and again, as a person would, until there is an answer.
    pub(crate) async fn until<T, F>(&self, what: &str, mut ask: impl FnMut() -> F) -> T
    where
        F: Future<Output = Option<T>>,
    {
        let begun = std::time::Instant::now();
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + DeserializeOwned
            + Serialize
            + Clone
            + Debug,
    {
        let object: K = serde_json::from_value(object).expect("an object");
        let api: Api<K> = self.api();
        api.create(&PostParams::default(), &object)
            .await
            .expect("created")
    }

    /// A pod of this spec.
    pub(crate) async fn pod(&self, name: &str, spec: Value) -> Pod {
        self.labelled(name, json!({}), spec).await
    }

    pub(crate) async fn labelled(&self, name: &str, labels: Value, mut spec: Value) -> Pod {
        if spec.get("terminationGracePeriodSeconds").is_none() {
            spec["terminationGracePeriodSeconds"] = json!(1);
        }
        if is_sandboxed() {
            self.tell(&mut spec);
        }
        self.create(json!({"metadata": {"name": name, "labels": labels}, "spec": spec}))
            .await
    }

    /// The spec with the shared folder in every container, at the same path as here.
    pub(crate) fn sharing(&self, mut spec: Value) -> Value {
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                container["volumeMounts"] = json!([{"name": "shared", "mountPath": &self.shared}]);
            }
        }
        spec["volumes"] = json!([{"name": "shared", "hostPath": {"path": &self.shared}}]);
        spec
    }

    /// Tells containers in sandboxes what the process runtime tells its own: where their volumes
    /// are, and whose they are.
    fn tell(&self, spec: &mut Value) {
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                let mut told = vec![
                    json!({"name": "WINDLASS_NODE", "value": self.folder.join("node")}),
                    json!({"name": "WINDLASS_TERMINATION_MESSAGE_PATH", "value": "/dev/termination-log"}),
                    json!({
                        "name": "WINDLASS_SERVICE_ACCOUNT",
                        "value": "/var/run/secrets/kubernetes.io/serviceaccount",
                    }),
                ];
                for mount in container["volumeMounts"].as_array().into_iter().flatten() {
                    let name = mount["name"].as_str().unwrap_or_default();
                    let name = name.replace(['-', '.'], "_").to_ascii_uppercase();
                    let name = format!("WINDLASS_VOLUME_{name}");
                    told.push(json!({"name": name, "value": mount["mountPath"]}));
                }
                told.extend(container["env"].as_array().into_iter().flatten().cloned());
                container["env"] = told.into();
            }
        }
    }

    /// Waits until a pod is as it should be, and returns it.
    pub(crate) async fn when(&self, name: &str, what: &str, is: impl Fn(&Pod) -> bool) -> Pod {
        let pods = self.pods();
        let params = kube::api::WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut last = None;
        let begun = std::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            let Ok(stream) = pods.watch(&params, "0").await else {
                continue;
            };
            let mut stream = stream.boxed();
            let left = PATIENCE.saturating_sub(begun.elapsed());
            while let Ok(Ok(Some(event))) = tokio::time::timeout(left, stream.try_next()).await {
                let (kube::api::WatchEvent::Added(pod) | kube::api::WatchEvent::Modified(pod)) =
                    event
                else {
                    continue;
                };
                if is(&pod) {
                    return pod;
                }
                last = Some(pod);
            }
        }
        let status = last.and_then(|pod| pod.status);
        panic!("pod {name} is not {what}: {status:#?}");
    }

    pub(crate) async fn running(&self, name: &str) -> Pod {
        self.when(name, "running", |pod| phase(pod) == "Running")
            .await
    }

    pub(crate) async fn ready(&self, name: &str) -> Pod {
        self.when(name, "ready", |pod| condition(pod, "Ready") == "True")
            .await
    }

    /// Waits for a pod's end; its phase must be this one.
    pub(crate) async fn ended(&self, name: &str, wanted: &str) -> Pod {
        let pod = self
            .when(name, "over", |pod| {
                matches!(phase(pod), "Succeeded" | "Failed")
            })
            .await;
        assert_eq!(phase(&pod), wanted, "{:#?}", pod.status);
        pod
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) {
        self.pods().delete(name, params).await.expect("deleted");
    }

    pub(crate) async fn gone(&self, name: &str) {
        let pods = self.pods();
        self.until("the end of a pod", || async {
            let present = pods.get_opt(name).await.expect("an answer");
            present.is_none().then_some(())
        })
        .await;
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + DeserializeOwned
            + Clone
            + Debug,
    {
        let api: Api<K> = self.api();
        api.patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .expect("patched");
    }

    /// What a container has written.
    pub(crate) async fn log(&self, pod: &str, container: &str) -> String {
        let params = LogParams {
            container: Some(container.to_owned()),
            ..LogParams::default()
        };
        self.pods().logs(pod, &params).await.expect("a log")
    }

    /// Waits until a container has written a line.
    pub(crate) async fn line(&self, pod: &str, container: &str, line: &str) {
        self.until(line, || async {
            let params = LogParams {
                container: Some(container.to_owned()),
                ..LogParams::default()
            };
            let log = self.pods().logs(pod, &params).await.unwrap_or_default();
            log.lines().any(|written| written == line).then_some(())
        })
        .await;
    }

    /// What people are told about a pod, by reason.
    pub(crate) async fn events(&self, pod: &str) -> BTreeMap<String, Vec<String>> {
        let events: Api<Event> = self.api();
        let mut notes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in events.list(&ListParams::default()).await.expect("events") {
            let regarding = event.regarding.unwrap_or_default();
            if regarding.name.as_deref() == Some(pod) {
                let note = event.note.unwrap_or_default();
                notes
                    .entry(event.reason.unwrap_or_default())
                    .or_default()
                    .push(note);
            }
        }
        notes
    }

    /// Waits until people are told something about a pod.
    pub(crate) async fn told(&self, pod: &str, reason: &str) -> String {
        self.until(reason, || async {
            let events = self.events(pod).await;
            events.get(reason).and_then(|notes| notes.first().cloned())
        })
        .await
    }

    /// Stops everything; nothing of it may be left.
    pub(crate) async fn stop(mut self) {
        let cluster = self.cluster.take().expect("a cluster");
        cluster.stop().await;
        assert_eq!(super::leftovers::of(&self.folder), [] as [String; 0]);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(cluster) = self.cluster.take() {
            drop(cluster);
            // Pods outlive their cluster; they must not outlive their test.
            let folder = self.folder.clone();
            let cleaning = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime.and_then(|runtime| runtime.block_on(windlass_cluster::clean_up(&folder)))
            });
            let _ = cleaning.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        let _ = std::fs::remove_dir_all(&self.shared);
    }
}

/// The living processes whose environment has a text in it.
pub(crate) fn marked(text: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let file = |name: &str| std::fs::read(format!("/proc/{pid}/{name}"));
            let environment = file("environ").unwrap_or_default();
            let state = file("stat").unwrap_or_default();
            let dead = String::from_utf8_lossy(&state).contains(") Z ");
            let mark = format!("WINDLASS_NODE={text}");
            let found = String::from_utf8_lossy(&environment).contains(&mark);
            found && !dead && *pid != i32::try_from(std::process::id()).unwrap_or(0)
        })
        .collect()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status.and_then(|s| s.phase.as_deref()).unwrap_or_default()
}

/// What a condition says, or nothing.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> &'a str {
    let status = pod.status.as_ref();
    let conditions = status.iter().flat_map(|s| s.conditions.iter().flatten());
    let mut found = conditions.filter(|condition| condition.type_ == type_);
    found.next().map(|c| c.status.as_str()).unwrap_or_default()
}

/// What the pod says about a container.
pub(crate) fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let own = status.container_statuses.iter().flatten();
    let init = status.init_container_statuses.iter().flatten();
    own.chain(init).find(|status| status.name == container)
}

/// The reason for which a container waits.
pub(crate) fn waits(pod: &Pod, container: &str) -> String {
    let state = status(pod, container).and_then(|status| status.state.clone());
    let waiting = state.and_then(|state| state.waiting);
    waiting
        .and_then(|waiting| waiting.reason)
        .unwrap_or_default()
}

/// How the present or the last run of a container ended: code, reason and message.
pub(crate) fn end(pod: &Pod, container: &str) -> Option<(i32, String, String)> {
    let known = status(pod, container)?;
    let ended = [known.state.as_ref(), known.last_state.as_ref()]
        .into_iter()
        .flatten()
        .find_map(|s| s.terminated.as_ref());
    ended.map(|ended| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (ended.exit_code, text(&ended.reason), text(&ended.message))
    })
}

pub(crate) fn uid(pod: &Pod) -> String {
    pod.uid().expect("a uid")
}

/// A container that runs a script; `$$` is a dollar sign.
pub(crate) fn script(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "busybox", "command": ["sh", "-c", script]})
}

/// A script that ends when it is asked to: the first process of a PID namespace hears of no signal
/// that it has not asked for.
pub(crate) const UNTIL_ASKED: &str = "trap 'exit 143' TERM; sleep 1000 & wait $!";

/// A container that runs a program in Python until it is asked to end. `ADDRESS` is where it may
/// listen: a plain process at the pod's address, as all of them are on the machine's network.
pub(crate) fn python(name: &str, program: &str) -> Value {
    let program = format!("import os\nADDRESS = os.environ.get('POD_IP', '0.0.0.0')\n{program}");
    // As with [`UNTIL_ASKED`].
    let run = "trap 'exit 143' TERM; python3 -c \"$0\" & wait $!";
    json!({"name": name, "image": "python", "command": ["sh", "-c", run, program]})
}

/// Whether pods are sandboxes, and not plain processes: `WINDLASS_RUNTIME` says so.
pub(crate) fn is_sandboxed() -> bool {
    std::env::var("WINDLASS_RUNTIME").is_ok_and(|name| name == "sandbox")
}

/// The node under test.
fn node() -> NodeSettings {
    let mut node = NodeSettings::new("here");
    let sandbox = is_sandboxed();
    let tests = std::env::current_exe().expect("a test knows where it is");
    node.shim = if sandbox {
        // Shims are the built program, beside the tests that run it.
        let folder = tests.parent().and_then(std::path::Path::parent);
        let program = folder
            .expect("tests are in target/<profile>/deps")
            .join("windlass");
        assert!(program.exists(), "{} is not built", program.display());
        vec![program.into()]
    } else {
        let test = ["--ignored", "--nocapture", "--exact", "stage::a_shim"];
        let test = test.map(std::ffi::OsString::from);
        [tests.into()].into_iter().chain(test).collect()
    };
    node.runtime = Some(if sandbox {
        Runtime::Sandbox
    } else {
        Runtime::Process
    });
    node
}

#[test]
#[ignore = "no test: what this program becomes when a node under test starts it again"]
fn a_shim() {
    use windlass_cluster::shim;
    let mut args = std::env::args().skip_while(|arg| arg != shim::SUBCOMMAND);
    if let Some(folder) = args.nth(1) {
        shim::main(std::path::Path::new(&folder));
    }
}
