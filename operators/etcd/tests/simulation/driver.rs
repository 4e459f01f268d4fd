//! [`Driver`]: lets the members of a [`World`] live and die with the pods of a `TestCluster`.
//!
//! A container whose command line has `--initial-cluster` is a member: it is started when the node
//! says that the container runs, stopped when it does not any more, and its container ends when the
//! member ends by itself. Its data folder lives as long as the volume it is on: as long as the pod,
//! the claim, or (without a volume) the container. The container is ready while the member serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use etcd_operator::restore::fetch::Arguments as Fetch;
use futures::StreamExt;
use futures::stream::select;
use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaim, Pod};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use windlass::testing::{Activity, DueGuard};
use windlass_cluster::{SimulatedNode, TestCluster};

use crate::database::puts_of;
use crate::vault::Vault;
use crate::world::{Arguments, Exit, Health, World};

/// Follows the pods until it is dropped.
pub(crate) struct Driver {
    pub(crate) world: World,
    task: JoinHandle<()>,
}

impl Driver {
    /// Ties a world to a cluster, beside which it is kept.
    pub(crate) fn tie(cluster: &TestCluster, world: World, vault: Vault) {
        let mut follower = Follower {
            world: world.clone(),
            vault,
            node: cluster.node().clone(),
            activity: cluster.activity(),
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            running: BTreeMap::new(),
            touched: BTreeSet::new(),
            epoch: 0,
            next: None,
        };
        let client = cluster.client();
        let task = tokio::spawn(async move { follower.follow(client).await });
        cluster.keep(Arc::new(Self { world, task }));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Namespace and name.
type Key = (String, String);

/// A container that is a member.
#[derive(Clone, Debug)]
struct Running {
    pod: Key,
    container: String,
    ready: Option<bool>,
}

struct Follower {
    world: World,
    /// From where seeds fetch their data.
    vault: Vault,
    node: SimulatedNode,
    activity: Activity,
    pods: BTreeMap<Key, Pod>,
    claims: BTreeMap<Key, PersistentVolumeClaim>,
    /// By the id of the container, which is the process in the world.
    running: BTreeMap<String, Running>,
    /// Pods that have changed.
    touched: BTreeSet<Key>,
    /// What has happened in the world so far is known.
    epoch: u64,
    next: Option<DueGuard>,
}

enum Change {
    Pod(Box<Event<Pod>>),
    Claim(Box<Event<PersistentVolumeClaim>>),
}

impl Follower {
    async fn follow(&mut self, client: Client) {
        let config = watcher::Config::default();
        let pods = watcher(Api::<Pod>::all(client.clone()), config.clone());
        let claims = watcher(Api::<PersistentVolumeClaim>::all(client), config);
        let pods = pods.filter_map(async |event| event.ok().map(Box::new).map(Change::Pod));
        let claims = claims.filter_map(async |event| event.ok().map(Box::new).map(Change::Claim));
        let mut changes = std::pin::pin!(select(pods, claims));
        let world = self.world.clone();
        loop {
            let at = self.next.as_ref().map(DueGuard::at);
            tokio::select! {
                biased;
                change = changes.next() => match change {
                    Some(change) => self.note(change),
                    None => return,
                },
                () = world.changed() => {}
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {}
            }
            let _busy = self.activity.busy("the simulated etcd");
            self.keep_up();
        }
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::Pod(event) => self.note_pod(*event),
            Change::Claim(event) => self.note_claim(*event),
        }
    }

    fn note_pod(&mut self, event: Event<Pod>) {
        match event {
            Event::Apply(pod) | Event::InitApply(pod) => {
                self.touched.insert(key(&pod));
                self.pods.insert(key(&pod), pod);
            }
            Event::Delete(pod) => {
                self.pods.remove(&key(&pod));
                self.end_those_gone(&key(&pod));
                self.world.lose_folder(&of_pod(&pod));
            }
            Event::Init | Event::InitDone => {}
        }
    }

    fn note_claim(&mut self, event: Event<PersistentVolumeClaim>) {
        match event {
            Event::Apply(claim) | Event::InitApply(claim) => {
                self.claims.insert(key(&claim), claim);
            }
            Event::Delete(claim) => {
                self.claims.remove(&key(&claim));
                self.world.lose_folder(&of_claim(&claim));
            }
            Event::Init | Event::InitDone => {}
        }
    }

    /// Lets the world be as the pods are, and then the pods as the world is.
    fn keep_up(&mut self) {
        for key in std::mem::take(&mut self.touched) {
            self.end_those_gone(&key);
            if let Some(pod) = self.pods.get(&key).cloned() {
                self.start_members(&key, &pod);
            }
        }
        let epoch = self.world.epoch();
        if self.epoch != epoch {
            self.epoch = epoch;
            self.tell();
        }
        let next = self.world.next_change();
        self.next = next.map(|at| self.activity.due(at, "the simulated etcd"));
    }

    /// Tells the node who has ended, and who is ready.
    fn tell(&mut self) {
        for (process, exit) in self.world.ended() {
            if let Some(running) = self.running.remove(&process) {
                self.crash(&running, &exit);
            }
        }
        for (process, running) in &mut self.running {
            let ready = self.world.health(process) == Health::Serving;
            if running.ready != Some(ready) {
                let (namespace, name) = &running.pod;
                let set = self
                    .node
                    .set_ready(namespace, name, &running.container, ready);
                running.ready = set.is_ok().then_some(ready);
            }
        }
    }

    /// Stops members of a pod whose containers do not run any more.
    fn end_those_gone(&mut self, key: &Key) {
        let now = self.pods.get(key).map(containers).unwrap_or_default();
        let world = &self.world;
        self.running.retain(|process, running| {
            let stays = running.pod != *key || now.contains(process);
            if !stays {
                world.stop(process);
            }
            stays
        });
    }

    fn start_members(&mut self, key: &Key, pod: &Pod) {
        for id in containers(pod) {
            if self.running.contains_key(&id) || self.world.has_ended(&id) {
                continue;
            }
            let Some((container, line)) = member_of(pod, &id) else {
                continue;
            };
            let arguments = Arguments::parse(line.iter().map(String::as_str));
            let folder = self.folder_of(key, pod, container, &arguments, &id);
            let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
            let address = format!("http://{}:2379", address.unwrap_or_default());
            let running = Running {
                pod: key.clone(),
                container: container.name.clone(),
                ready: None,
            };
            self.restore(pod, &folder, &arguments);
            match self.world.start(&id, &folder, arguments, &address) {
                Ok(()) => {
                    self.running.insert(id, running);
                }
                Err(exit) => {
                    self.world.note_end(&id);
                    self.crash(&running, &exit);
                }
            }
        }
    }

    /// What the init containers of a seed do: its folder is filled from the backup. Without one it
    /// stays empty, and etcd refuses to start on it.
    fn restore(&self, pod: &Pod, folder: &str, arguments: &Arguments) {
        let init = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.init_containers.as_ref());
        let fetch = init.into_iter().flatten().find(|one| one.name == "fetch");
        let Some(argument) = fetch.and_then(|fetch| fetch.args.as_ref()?.get(2)) else {
            return;
        };
        let fetch: Fetch = serde_json::from_str(argument).expect("arguments of fetch");
        let object = self.vault.object(&fetch.source.key);
        if let Some(puts) = object.and_then(|object| puts_of(&object)) {
            self.world.restore(folder, arguments, &puts);
        }
    }

    fn crash(&self, running: &Running, exit: &Exit) {
        let ((namespace, name), container) = (&running.pod, &running.container);
        // It may be gone already.
        let _ = self
            .node
            .crash_with_message(namespace, name, container, exit.code, &exit.message);
    }

    /// What a member's data folder is called here, by the volume that it is on.
    fn folder_of(
        &self,
        (namespace, _): &Key,
        pod: &Pod,
        container: &Container,
        arguments: &Arguments,
        id: &str,
    ) -> String {
        let mounts = container.volume_mounts.iter().flatten();
        let mount = mounts
            .filter(|mount| arguments.data_dir.starts_with(&mount.mount_path))
            .max_by_key(|mount| mount.mount_path.len());
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
        let mut volumes = volumes.into_iter().flatten();
        let volume = mount.and_then(|mount| volumes.find(|volume| volume.name == mount.name));
        let Some(volume) = volume else {
            return format!("container {id}");
        };
        match &volume.persistent_volume_claim {
            None => of_pod(pod),
            Some(source) => {
                let key = (namespace.clone(), source.claim_name.clone());
                let claim = self.claims.get(&key);
                claim.map_or_else(|| format!("no claim {}", source.claim_name), of_claim)
            }
        }
    }
}

fn key(object: &impl ResourceExt) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn of_pod(pod: &Pod) -> String {
    format!("pod {}", pod.uid().unwrap_or_default())
}

fn of_claim(claim: &PersistentVolumeClaim) -> String {
    format!("claim {}", claim.uid().unwrap_or_default())
}

/// The ids of the containers of a pod that run.
fn containers(pod: &Pod) -> Vec<String> {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.container_statuses.as_ref());
    let runs = statuses.into_iter().flatten().filter(|status| {
        let state = status.state.as_ref();
        state.is_some_and(|state| state.running.is_some())
    });
    runs.filter_map(|status| status.container_id.clone())
        .collect()
}

/// The container of that id and its command line, if it is a member.
fn member_of<'a>(pod: &'a Pod, id: &str) -> Option<(&'a Container, Vec<String>)> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let name = &statuses
        .iter()
        .find(|one| one.container_id.as_deref() == Some(id))?
        .name;
    let mut containers = pod.spec.as_ref()?.containers.iter();
    let container = containers.find(|container| container.name == *name)?;
    let words = container.command.iter().chain(&container.args).flatten();
    let line: Vec<String> = words.map(|word| expand(pod, container, word)).collect();
    let is_member = line
        .iter()
        .any(|word| word.starts_with("--initial-cluster="));
    is_member.then_some((container, line))
}

/// A word of a command line with the variables that come from annotations, as the pod has them now.
fn expand(pod: &Pod, container: &Container, word: &str) -> String {
    let variables = container.env.iter().flatten();
    variables.fold(word.to_owned(), |word, variable| {
        let source = variable.value_from.as_ref();
        let field = source.and_then(|source| source.field_ref.as_ref());
        let path = field.and_then(|field| field.field_path.strip_prefix("metadata.annotations['"));
        let Some(key) = path.and_then(|path| path.strip_suffix("']")) else {
            return word;
        };
        let value = pod.annotations().get(key);
        let name = format!("$({})", variable.name);
        word.replace(&name, value.map_or("", String::as_str))
    })
}
