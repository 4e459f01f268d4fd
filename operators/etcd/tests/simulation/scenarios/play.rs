//! How a scenario is played: the operator with a simulated etcd, and a client that writes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_operator::{EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, Storage, operator_with};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use windlass::Operator;
use windlass_cluster::{Stage, TestCluster};

use crate::driver::Driver;
use crate::vault::Vault;
use crate::world::{OfReplay, Version, World};

/// How long anything may take, in virtual time: disturbed, it takes longer.
pub(super) const PATIENCE: Duration = Duration::from_mins(20);
/// How often it is looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// How often the client writes.
const WRITE: Duration = Duration::from_secs(2);
/// After how long a silent member is replaced in scenarios.
const GRACE: i64 = 30;

/// The operator, with a world of its own for this cluster.
pub(crate) fn make(cluster: &TestCluster) -> Operator {
    // How long the log is and how many members there were depends on what went wrong on the way.
    cluster.do_not_compare(&["raftIndex", "serial"]);
    let fates = Arc::new(OfReplay(cluster.outside()));
    let world = World::new(Version::V3_4, fates);
    let vault = Vault::new(Some(cluster.outside()));
    Driver::tie(cluster, world.clone(), vault.clone());
    cluster.keep(Arc::new(vault.clone()));
    operator_with(Arc::new(world), Arc::new(vault))
}

/// Plays a scenario once.
pub(crate) fn play<F, Fut>(scenario: F)
where
    F: FnOnce(Scene) -> Fut,
    Fut: Future<Output = ()>,
{
    windlass_cluster::private::run(|cluster: TestCluster| async move {
        cluster.start_made(make).await;
        scenario(Scene::new(cluster)).await;
    });
}

/// Plays a scenario again and again, disturbed in every way there is.
pub(crate) fn disturb<F, Fut>(scenario: F)
where
    F: Fn(Scene) -> Fut,
    Fut: Future<Output = ()>,
{
    windlass_cluster::private::run(|cluster: TestCluster| async move {
        cluster.start_made(make).await;
        let play = |cluster| scenario(Scene::new(cluster));
        cluster.ends_alike_however_disturbed(play).await;
    });
}

/// Where a scenario is played.
pub(crate) struct Scene {
    pub(crate) stage: Stage,
    pub(crate) world: World,
    pub(crate) vault: Vault,
    pub(crate) cluster: TestCluster,
    writers: Mutex<Vec<Writer>>,
}

/// A client that writes to one cluster, and notes what was acknowledged.
struct Writer {
    of: String,
    acknowledged: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scene {
    fn new(cluster: TestCluster) -> Self {
        Self {
            world: cluster.kept::<Driver>().world.clone(),
            vault: (*cluster.kept::<Vault>()).clone(),
            stage: Stage::in_process(cluster.clone()),
            cluster,
            writers: Mutex::default(),
        }
    }

    /// Makes a cluster, to which a client writes from now on.
    pub(crate) async fn create(&self, cluster: &EtcdCluster) {
        self.stage.create(cluster).await;
        let of = format!(".{}.default.svc:", cluster.name_any());
        let (world, part) = (self.world.clone(), of.clone());
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let noted = acknowledged.clone();
        let task = tokio::spawn(async move {
            let mut number = 0;
            loop {
                sleep(WRITE).await;
                let value = format!("{number:06}");
                for endpoint in world.endpoints(&part) {
                    if world
                        .put(&endpoint, &format!("key-{value}"), &value)
                        .await
                        .is_ok()
                    {
                        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                        noted.push(value);
                        break;
                    }
                }
                number += 1;
            }
        });
        let writer = Writer {
            of,
            acknowledged,
            task,
        };
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.push(writer);
    }

    pub(crate) async fn status(&self, name: &str) -> EtcdClusterStatus {
        let found = self.stage.find::<EtcdCluster>(name).await;
        found.and_then(|found| found.status).unwrap_or_default()
    }

    /// Waits until the status is as expected.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&EtcdClusterStatus) -> bool,
    ) -> EtcdClusterStatus {
        let limit = Instant::now() + PATIENCE;
        loop {
            let status = self.status(name).await;
            if is(&status) {
                return status;
            }
            assert!(
                Instant::now() < limit,
                "{name} is not {what} in time: {status:#?}"
            );
            sleep(LOOK).await;
        }
    }

    /// Waits until a cluster has as many members as that, all of them well, and is left alone.
    pub(crate) async fn ready(&self, name: &str, size: usize) -> EtcdClusterStatus {
        let generation = self.stage.find::<EtcdCluster>(name).await;
        let generation = generation.and_then(|cluster| cluster.metadata.generation);
        let is_ready = |status: &EtcdClusterStatus| {
            status.phase == "Running"
                && status.members.ready.len() == size
                && status.members.unready.is_empty()
                && status.roster.len() == size
                && status.roster.iter().all(|member| !member.learner)
                && status.intent.is_none()
                && status.observed_generation == generation
                && is(status, "Available", "True")
                && is(status, "Progressing", "False")
                && is(status, "Degraded", "False")
        };
        self.until(name, &format!("ready with {size} members"), is_ready)
            .await;
        self.stage.rest().await;
        let status = self.until(name, "still ready", is_ready).await;
        let members = self.world.voters(&format!(".{name}.default.svc:"));
        assert_eq!(members, size, "as etcd itself knows them");
        status
    }

    /// Every acknowledged write is there, in order; no cluster was begun twice.
    pub(crate) fn nothing_is_lost(&self) {
        self.only_one_was_begun();
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        for writer in writers.iter() {
            writer.task.abort();
            let noted = writer
                .acknowledged
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            assert!(!noted.is_empty(), "nothing was written to {}", writer.of);
            let there = self.world.writes(&writer.of);
            let mut there = there.iter();
            for value in noted.iter() {
                assert!(
                    there.any(|one| one == value),
                    "write {value} to {} is lost",
                    writer.of
                );
            }
        }
    }

    /// No write is acknowledged any more, and those that were are forgotten: a restore follows.
    pub(crate) fn end_writers(&self) {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.clear();
    }

    /// No cluster was begun twice.
    pub(crate) fn only_one_was_begun(&self) {
        let mut begun = self.world.begun();
        begun.sort_unstable();
        let all = begun.len();
        begun.dedup();
        assert_eq!(
            begun.len(),
            all,
            "a cluster was begun as new more than once"
        );
    }

    /// The process of a pod's member.
    async fn process(&self, pod: &str) -> String {
        let found = self.stage.find::<Pod>(pod).await.expect("the pod");
        let status = found.status.unwrap_or_default();
        let mut containers = status.container_statuses.unwrap_or_default().into_iter();
        containers
            .find_map(|one| one.container_id)
            .expect("a container that runs")
    }

    /// Cuts a member off from everybody, or lets it back.
    pub(crate) async fn cut(&self, pod: &str, cut: bool) {
        self.world.cut(&self.process(pod).await, cut);
    }

    /// Spoils the data folder of a member, and ends its process.
    pub(crate) async fn corrupt(&self, pod: &str) {
        let process = self.process(pod).await;
        self.world.corrupt_folder_of(&process);
        let killed = self.cluster.node().kill_container("default", pod, "etcd");
        killed.expect("a container that runs");
    }

    /// Empties the data folder of a member under its living pod, and ends its process.
    pub(crate) async fn empty(&self, pod: &str) {
        self.world.empty_folder_of(&self.process(pod).await);
        let killed = self.cluster.node().kill_container("default", pod, "etcd");
        killed.expect("a container that runs");
    }

    /// Until etcd in a pod has ended because there was no data in its folder.
    pub(crate) async fn refused(&self, pod: &str) {
        let said = |pod: &Pod| {
            let etcd = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
            let states = [&etcd.state, &etcd.last_state].into_iter().flatten();
            let mut ends = states.filter_map(|state| state.terminated.as_ref());
            ends.next()?.message.clone()
        };
        let refused = |pod: &Pod| said(pod).is_some_and(|said| said.contains("local name"));
        self.stage.until(pod, "refused without data", refused).await;
    }

    /// How many writes have been acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |writer: &Writer| {
            let noted = writer.acknowledged.lock();
            noted.unwrap_or_else(PoisonError::into_inner).len()
        };
        writers.iter().map(of).sum()
    }

    /// Until more writes are acknowledged.
    pub(crate) async fn progress(&self) {
        let before = self.acknowledged();
        let limit = Instant::now() + PATIENCE;
        while self.acknowledged() <= before {
            assert!(Instant::now() < limit, "no write is acknowledged in time");
            sleep(LOOK).await;
        }
    }

    /// Lets the calls to all members of a cluster hang.
    pub(crate) async fn hang(&self, cluster: &str) {
        self.world.hang(&format!(".{cluster}.default.svc:"));
        for pod in self.pods_of(cluster).await {
            let found = self.stage.find::<Pod>(&pod).await;
            let address = found.and_then(|pod| pod.status?.pod_ip).unwrap_or_default();
            self.world.hang(&format!("//{address}:"));
        }
    }

    /// Makes the member of a pod the leader.
    pub(crate) fn lead(&self, member: &str) {
        self.world.lead(member);
    }

    /// The names of the pods of a cluster.
    pub(crate) async fn pods_of(&self, cluster: &str) -> Vec<String> {
        let start = format!("{cluster}-");
        let pods = self.pods().await.into_iter();
        pods.filter(|pod| pod.starts_with(&start)).collect()
    }

    /// The names of the pods, in order.
    pub(crate) async fn pods(&self) -> Vec<String> {
        let pods = self.stage.list::<Pod>().await;
        pods.iter().map(ResourceExt::name_any).collect()
    }
}

/// A cluster of that size, whose silent members are replaced soon.
pub(crate) fn etcd(name: &str, size: i32) -> EtcdCluster {
    let spec = EtcdClusterSpec {
        size,
        replace_after_seconds: Some(GRACE),
        ..EtcdClusterSpec::default()
    };
    EtcdCluster::new(name, spec)
}

/// The same, with a volume for each member.
pub(crate) fn with_volumes(mut cluster: EtcdCluster) -> EtcdCluster {
    cluster.spec.storage = Some(Storage {
        size: Quantity("1Gi".to_owned()),
        storage_class_name: None,
    });
    cluster
}

pub(crate) fn is(status: &EtcdClusterStatus, condition: &str, wanted: &str) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|one| one.type_ == condition && one.status == wanted)
}

/// Whether a condition holds for this reason.
pub(crate) fn because(status: &EtcdClusterStatus, condition: &str, reason: &str) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|one| one.type_ == condition && one.status == "True" && one.reason == reason)
}
