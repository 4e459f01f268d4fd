//! The runtime of plain child processes: what runs, where, and how it is stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::net::TcpStream;
use tokio::sync::{broadcast, mpsc, watch};
use windlass::{Clock, Environment as Surroundings};

use super::container;
use super::place::Place;
use super::session::{self, SharedInput};
use super::store::{PodNote, Store};
use super::terminal::Terminal;
use super::tree::{self, Leader, Marks, NODE_MARK, POD_MARK};
use super::{HOST_IP, address};
use crate::env::Environment;
use crate::image::ImageTable;
use crate::log::{Heard, Progress};
use crate::pod::hostname;
use crate::program::Programs;
use crate::runtime::{Connection, Execution, Launch, LogFile, Reports, Runtime, Session};

/// Runs containers as child processes.
#[derive(Debug, Clone)]
pub(crate) struct ProcessRuntime {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) programs: Programs,
    pub(super) as_root: bool,
    /// Where the API server is, for programs that look for it as a pod does.
    api_server: Option<(String, u16)>,
    clock: OnceLock<Clock>,
    draining: AtomicBool,
    pods: Mutex<BTreeMap<String, PodEntry>>,
}

#[derive(Debug)]
struct PodEntry {
    note: PodNote,
    containers: BTreeMap<String, Live>,
}

/// A container that runs.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) run: i32,
    /// Asks for its end, within a time.
    pub(super) stop: mpsc::UnboundedSender<Duration>,
    pub(super) leader: Leader,
    /// Follows its log.
    pub(super) progress: watch::Receiver<Progress>,
    /// Where other processes of it are started.
    pub(super) place: Place,
    /// What it reads, if it does.
    pub(super) stdin: Option<SharedInput>,
    /// Whether the first who types ends its input.
    pub(super) stdin_once: bool,
    /// What it writes, as it writes it.
    pub(super) voice: broadcast::Sender<Heard>,
    pub(super) terminal: Option<Terminal>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl ProcessRuntime {
    pub(crate) fn new(store: Store, images: ImageTable, api_server: Option<(String, u16)>) -> Self {
        let as_root = rustix::process::geteuid().is_root();
        let shared = Shared {
            store,
            programs: Programs::new(images, as_root),
            as_root,
            api_server,
            clock: OnceLock::new(),
            draining: AtomicBool::new(false),
            pods: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The present run of a container.
    fn running(&self, uid: &str, container: &str) -> io::Result<Live> {
        let pods = self.shared.lock();
        let entry = pods.get(uid);
        let live = entry.and_then(|entry| entry.containers.get(container));
        live.cloned().ok_or_else(|| {
            let message = format!("container not found (\"{container}\")");
            io::Error::new(io::ErrorKind::NotFound, message)
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, PodEntry>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock.get().cloned().unwrap_or_default()
    }

    /// Notes that a container runs, so that it can be stopped; false when its pod is gone, or the
    /// node is being stopped, and it must not run.
    pub(super) fn live(&self, uid: &str, container: &str, live: Live) -> bool {
        let mut pods = self.lock();
        let Some(entry) = pods.get_mut(uid) else {
            return false;
        };
        entry.containers.insert(container.to_owned(), live);
        !self.draining.load(Ordering::SeqCst)
    }

    pub(super) fn dead(&self, uid: &str, container: &str, run: i32) {
        if let Some(entry) = self.lock().get_mut(uid)
            && entry
                .containers
                .get(container)
                .is_some_and(|live| live.run == run)
        {
            entry.containers.remove(container);
        }
    }

    /// The value of the mark that every process of a container carries.
    pub(super) fn mark(uid: &str, container: &str) -> String {
        format!("{uid}/{container}")
    }

    /// Asks every container to end and waits until all have.
    async fn stop_all(&self, grace: Duration) {
        let mut logs = Vec::new();
        for entry in self.lock().values() {
            for live in entry.containers.values() {
                let _ = live.stop.send(grace);
                logs.push(live.progress.clone());
            }
        }
        for mut log in logs {
            // The log ends after the last process has; a writer that is gone has ended, too.
            let _ = log.wait_for(|progress| progress.ended).await;
        }
    }

    /// Ends every process that this node, in this life or a former one, has started.
    async fn kill_all(&self) {
        self.kill_recorded(|_| true).await;
        Marks::new(NODE_MARK, &self.store.root().to_string_lossy(), None)
            .kill()
            .await;
    }

    /// Ends the processes that are on record for some pods.
    async fn kill_recorded(&self, of: impl Fn(&str) -> bool) {
        for (uid, container, leader) in self.store.processes().unwrap_or_default() {
            if of(&uid) {
                Marks::new(POD_MARK, &uid, Some(leader)).kill().await;
                self.store.ended(&uid, &container);
            }
        }
    }
}

impl Runtime for ProcessRuntime {
    async fn begin(&self, surroundings: &Surroundings) -> io::Result<()> {
        let _ = self.shared.clock.set(surroundings.clock.clone());
        // What was started by an earlier start of this same program still has its attendants.
        self.shared.stop_all(Duration::ZERO).await;
        self.shared.kill_all().await;
        self.shared.draining.store(false, Ordering::SeqCst);
        let known = self.shared.store.pods()?;
        let mut pods = self.shared.lock();
        pods.clear();
        for (uid, note) in known {
            pods.insert(
                uid,
                PodEntry {
                    note,
                    containers: BTreeMap::new(),
                },
            );
        }
        Ok(())
    }

    async fn set_up(&self, pod: &Pod) -> io::Result<IpAddr> {
        if pod
            .spec
            .as_ref()
            .is_some_and(|spec| spec.host_network == Some(true))
        {
            return Ok(HOST_IP.into());
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let name = pod.metadata.name.clone().unwrap_or_default();
        let mut pods = self.shared.lock();
        if let Some(entry) = pods.get(&uid) {
            return Ok(entry.note.address.into());
        }
        let mut taken: BTreeSet<Ipv4Addr> = pods.values().map(|entry| entry.note.address).collect();
        taken.append(&mut address::bound());
        let address = address::allocate(self.shared.store.root(), &namespace, &name, &taken)
            .ok_or_else(|| io::Error::other("no address is left for the pod"))?;
        let note = PodNote {
            namespace,
            name,
            address,
        };
        self.shared.store.remember(&uid, &note)?;
        pods.insert(
            uid,
            PodEntry {
                note,
                containers: BTreeMap::new(),
            },
        );
        Ok(address.into())
    }

    fn environment(&self, pod: &Pod, address: IpAddr) -> Environment {
        let mut environment = Environment::default();
        let path = std::env::var("PATH");
        environment.set(
            "PATH",
            path.as_deref().unwrap_or("/usr/local/bin:/usr/bin:/bin"),
        );
        environment.set("HOSTNAME", hostname(pod));
        environment.set("POD_IP", address.to_string());
        environment.set(NODE_MARK, self.shared.store.root().to_string_lossy());
        environment.set(POD_MARK, pod.metadata.uid.as_deref().unwrap_or_default());
        if let Some((host, port)) = &self.shared.api_server {
            environment.set("KUBERNETES_SERVICE_HOST", host.as_str());
            environment.set("KUBERNETES_SERVICE_PORT", port.to_string());
        }
        environment
    }

    fn start(&self, launch: Launch, reports: Reports) {
        if !self.is_draining() {
            tokio::spawn(container::run(self.shared.clone(), launch, reports));
        }
    }

    fn stop(&self, uid: &str, container: &str, grace: Duration) {
        if let Some(entry) = self.shared.lock().get(uid)
            && let Some(live) = entry.containers.get(container)
        {
            let _ = live.stop.send(grace);
        }
    }

    async fn tear_down(&self, uid: &str) {
        let containers = {
            let entry = self.shared.lock().remove(uid);
            entry.map(|entry| entry.containers).unwrap_or_default()
        };
        for live in containers.values() {
            let _ = live.stop.send(Duration::ZERO);
        }
        for mut live in containers.into_values() {
            let _ = live.progress.wait_for(|progress| progress.ended).await;
        }
        self.shared.kill_recorded(|recorded| recorded == uid).await;
        Marks::new(POD_MARK, uid, None).kill().await;
        if let Err(error) = self.shared.store.forget(uid) {
            tracing::warn!(%error, uid, "cannot remove the folder of a pod");
        }
    }

    fn known(&self) -> io::Result<Vec<String>> {
        let pods = self.shared.store.pods()?;
        Ok(pods.into_iter().map(|(uid, _)| uid).collect())
    }

    async fn drain(&self, limit: Duration) {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.shared.stop_all(limit).await;
        self.shared.kill_all().await;
    }

    fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::SeqCst)
    }

    async fn exec(&self, uid: &str, container: &str, execution: Execution) -> io::Result<Session> {
        let live = self.running(uid, container)?;
        session::exec(&live.place, &execution)
    }

    async fn attach(&self, uid: &str, container: &str, stdin: bool) -> io::Result<Session> {
        session::attach(&self.running(uid, container)?, stdin)
    }

    async fn connect(&self, uid: &str, port: u16) -> io::Result<Box<dyn Connection>> {
        let address = self.shared.lock().get(uid).map(|entry| entry.note.address);
        // A pod on the machine's own network is not on record.
        let address = address.unwrap_or(HOST_IP);
        Ok(Box::new(TcpStream::connect((address, port)).await?))
    }

    fn log(&self, uid: &str, container: &str, previous: bool) -> Option<LogFile> {
        let live = self.running(uid, container).ok();
        let store = &self.shared.store;
        let last = store.last_run(uid, container)?;
        let run = if previous { last - 1 } else { last };
        let path = store.log(uid, container, run);
        let progress = live
            .filter(|live| live.run == run)
            .map(|live| live.progress);
        path.exists().then_some(LogFile { path, progress })
    }

    async fn kill(&self, uid: &str, container: &str) -> io::Result<()> {
        tree::kill(self.running(uid, container)?.leader);
        Ok(())
    }

    async fn cut(&self, _uid: &str, _cut: bool) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "pods of the process runtime are on the machine's own network, which cannot be cut",
        ))
    }
}
