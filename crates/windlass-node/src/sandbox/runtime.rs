//! The runtime of sandboxes: what runs, where, and how it is stopped.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::{mpsc, watch};
use windlass::{Clock, Environment as Surroundings};

use super::container::{self, Attendance};
use super::image::Images;
use super::leftovers::{delete_containers, end_former, remove_cgroups};
use super::store::{PodNote, Store};
use super::{FOLDERS, SandboxConfig, exec, files, follow, oci_runtime};
use crate::env::Environment;
use crate::network::Bridge;
use crate::pod::Termination;
use crate::program::{Found, Obstacle, Program, Programs};
use crate::runtime::{
    Adopted, Connection, Execution, Launch, LogFile, Note, Report, Reports, Runtime, Session,
};
use crate::shim::{self, Held, Request, Shim};

/// Runs containers in sandboxes.
#[derive(Debug, Clone)]
pub(crate) struct SandboxRuntime {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) bridge: Bridge,
    pub(super) hidden: PathBuf,
    programs: Programs,
    images: Images,
    pub(super) oci: PathBuf,
    pub(super) shim: Vec<OsString>,
    api_server: (String, u16),
    clock: OnceLock<Clock>,
    draining: AtomicBool,
    commands: AtomicU64,
    pods: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) note: PodNote,
    pub(super) shim: Option<Arc<Shim>>,
    pub(super) containers: BTreeMap<String, Live>,
    /// What the shim held when this life of the node began, until the pod's worker asks for it.
    pub(super) found: Vec<Held>,
}

/// A container that runs.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) run: i32,
    /// Asks for its end, within a time.
    pub(super) stop: mpsc::UnboundedSender<Duration>,
    pub(super) ended: watch::Receiver<bool>,
}

impl SandboxRuntime {
    pub(crate) fn new(config: SandboxConfig) -> io::Result<Self> {
        let oci = oci_runtime().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "no OCI runtime is installed")
        })?;
        let shared = Shared {
            store: Store::open(&config.state_dir)?,
            bridge: config.bridge,
            hidden: config.hidden,
            programs: Programs::new(config.images.without_addresses(), true),
            images: Images::new(config.image_dir, config.state_dir.join("images")),
            oci,
            shim: config.shim,
            api_server: config.api_server,
            clock: OnceLock::new(),
            draining: AtomicBool::new(false),
            commands: AtomicU64::new(0),
            pods: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// What `kubectl get nodes -o wide` shows.
    pub(crate) fn version(&self) -> String {
        format!(
            "{}://windlass-{}",
            self.shared.oci_name(),
            env!("CARGO_PKG_VERSION")
        )
    }

    fn running(&self, uid: &str, container: &str) -> io::Result<(Arc<Shim>, Live)> {
        let pods = self.shared.lock();
        let found = pods.get(uid).and_then(|entry| {
            let live = entry.containers.get(container)?.clone();
            Some((entry.shim.clone()?, live))
        });
        found.ok_or_else(|| {
            let message = format!("container {container} is not running");
            io::Error::new(io::ErrorKind::NotFound, message)
        })
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock.get().cloned().unwrap_or_default()
    }

    pub(super) fn oci_name(&self) -> String {
        let name = self.oci.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The OCI runtime's name for a run.
    pub(super) fn id(uid: &str, container: &str, run: i32) -> String {
        format!("{uid}.{container}.{run}")
    }

    /// The shim of a pod, if it is there.
    pub(super) fn shim(&self, uid: &str) -> Option<Arc<Shim>> {
        let shim = self.lock().get(uid)?.shim.clone()?;
        (!shim.is_gone()).then_some(shim)
    }

    /// The program of a container, what a person should know about it, what its root is an overlay
    /// of, and where it runs.
    pub(super) async fn program(
        &self,
        launch: &Launch,
    ) -> Result<(Program, Option<Note>, String, String), Obstacle> {
        let name = launch.container.image.as_deref().unwrap_or_default();
        let image = self.images.find(name).await;
        let image = image.map_err(|error| {
            let message = format!("image \"{name}\" cannot be unpacked: {error}");
            Obstacle::Configuration(message)
        })?;
        if let Some(image) = image {
            let dir = Some(image.config.working_dir.clone()).filter(|dir| !dir.is_empty());
            let lower = image.root.to_string_lossy().into_owned();
            let program = image.program(launch);
            return Ok((program, None, lower, dir.unwrap_or_else(|| "/".to_owned())));
        }
        let Found { program, note, .. } = self.programs.find(launch).await?;
        Ok((program, note, "/".to_owned(), "/".to_owned()))
    }

    /// Notes that a container runs; false when its pod is gone, or the node is being stopped, and
    /// it must not run.
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

    /// A shim died: what it held is ended, and the pod gets another before its next container.
    pub(super) async fn lost(&self, uid: &str, shim: &Arc<Shim>) {
        {
            let mut pods = self.lock();
            let Some(entry) = pods.get_mut(uid) else {
                return;
            };
            if !entry
                .shim
                .as_ref()
                .is_some_and(|known| Arc::ptr_eq(known, shim))
            {
                return;
            }
            entry.shim = None;
        }
        delete_containers(&self.oci, &self.store, |id| id.starts_with(uid)).await;
        self.bridge.disconnect(uid).await;
    }

    /// Asks every container to end, within a time, and waits until all have.
    async fn stop_all(&self, grace: Duration) {
        let mut ends = Vec::new();
        for entry in self.lock().values() {
            for live in entry.containers.values() {
                let _ = live.stop.send(grace);
                ends.push(live.ended.clone());
            }
        }
        for mut ended in ends {
            // One whose attendant is gone has ended, too.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

impl Runtime for SandboxRuntime {
    async fn begin(&self, surroundings: &Surroundings) -> io::Result<()> {
        let shared = &self.shared;
        let _ = shared.clock.set(surroundings.clock.clone());
        shared.draining.store(false, Ordering::SeqCst);
        let mut kept = BTreeMap::new();
        for (uid, note) in shared.store.pods()? {
            let folder = shared.store.pod(&uid);
            let (shim, found) = match shim::find(&folder).await {
                // It was killed before the pod had its network, or after the pod had ended.
                Some((shim, held)) if held.is_empty() => {
                    shim.end().await;
                    (None, Vec::new())
                }
                Some((shim, held)) => (Some(shim), held),
                None => (None, Vec::new()),
            };
            let entry = Entry {
                note,
                shim,
                containers: BTreeMap::new(),
                found,
            };
            kept.insert(uid, entry);
        }
        let held = |id: &str| {
            kept.iter()
                .any(|(uid, entry)| entry.shim.is_some() && id.starts_with(uid))
        };
        delete_containers(&shared.oci, &shared.store, |id| !held(id)).await;
        for (uid, entry) in &kept {
            if entry.shim.is_none() {
                shared.bridge.disconnect(uid).await;
            }
        }
        *shared.lock() = kept;
        Ok(())
    }

    fn adopt(&self, uid: &str, reports: &Reports) -> Vec<Adopted> {
        let found = {
            let mut pods = self.shared.lock();
            let Some(entry) = pods.get_mut(uid) else {
                return Vec::new();
            };
            let Some(shim) = entry.shim.clone() else {
                return Vec::new();
            };
            (shim, std::mem::take(&mut entry.found))
        };
        let (shim, found) = found;
        let mut adopted = Vec::new();
        for held in found {
            adopted.push(Adopted {
                container: held.container.clone(),
                run: held.run,
                id: format!("{}://{}", self.shared.oci_name(), held.id),
                image_id: held.image_id.clone(),
                at: held.started_at,
            });
            if let Some((code, at)) = held.exit {
                shim.ask(Request::Forget {
                    container: held.container.clone(),
                    run: held.run,
                });
                reports.report(Report::Exited {
                    container: held.container,
                    run: held.run,
                    termination: Termination::exited(code, held.started_at, at),
                });
            } else {
                let news = shim.follow(&held.container, held.run);
                let attendance = Attendance::of(&self.shared, uid, &held, shim.clone(), news);
                let (shared, reports) = (self.shared.clone(), reports.clone());
                tokio::spawn(async move { attendance.attend(&shared, &reports).await });
            }
        }
        adopted
    }

    async fn set_up(&self, pod: &Pod) -> io::Result<IpAddr> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let note = self.shared.note(pod, uid)?;
        if self.shared.shim(uid).is_none() {
            let shim = self.shared.make(pod, uid, &note).await?;
            let kept = match self.shared.lock().get_mut(uid) {
                Some(entry) => {
                    entry.shim = Some(shim.clone());
                    true
                }
                None => false,
            };
            if !kept {
                shim.end().await;
                return Err(io::Error::other("the pod is gone"));
            }
        }
        Ok(note.address.into())
    }

    fn environment(&self, pod: &Pod, _address: IpAddr) -> Environment {
        let mut environment = Environment::default();
        environment.set("PATH", FOLDERS);
        environment.set("HOSTNAME", files::hostname(pod));
        let (host, port) = &self.shared.api_server;
        environment.set("KUBERNETES_SERVICE_HOST", host.as_str());
        environment.set("KUBERNETES_SERVICE_PORT", port.to_string());
        environment.set("KUBERNETES_SERVICE_PORT_HTTPS", port.to_string());
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
        let entry = self.shared.lock().remove(uid);
        match entry.and_then(|entry| entry.shim) {
            Some(shim) => shim.end().await,
            // Of a former life, perhaps, and not looked for yet.
            None => end_former(&self.shared.store, uid).await,
        }
        delete_containers(&self.shared.oci, &self.shared.store, |id| {
            id.starts_with(uid)
        })
        .await;
        self.shared.bridge.disconnect(uid).await;
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
        let mut shims = Vec::new();
        for (uid, entry) in self.shared.lock().iter_mut() {
            if let Some(shim) = entry.shim.take() {
                shims.push((uid.clone(), shim));
            }
        }
        let ending = shims.iter().map(|(uid, shim)| async move {
            shim.end().await;
            self.shared.bridge.disconnect(uid).await;
        });
        futures::future::join_all(ending).await;
        delete_containers(&self.shared.oci, &self.shared.store, |_| true).await;
        remove_cgroups(&self.shared.bridge.name);
    }

    fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::SeqCst)
    }

    async fn exec(&self, uid: &str, container: &str, command: Execution) -> io::Result<Session> {
        let (_, live) = self.running(uid, container)?;
        let place = exec::Place {
            oci: self.shared.oci.clone(),
            oci_root: self.shared.store.oci(),
            id: Shared::id(uid, container, live.run),
            bundle: self.shared.store.bundle(uid, container, live.run),
            number: self.shared.commands.fetch_add(1, Ordering::Relaxed),
        };
        exec::exec(&place, &command)
    }

    async fn attach(&self, uid: &str, container: &str, stdin: bool) -> io::Result<Session> {
        let (shim, _) = self.running(uid, container)?;
        exec::attach(&shim, container, stdin).await
    }

    async fn connect(&self, uid: &str, port: u16) -> io::Result<Box<dyn Connection>> {
        let shim = self
            .shared
            .shim(uid)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the pod's sandbox is gone"))?;
        let stream = crate::network::connect_inside(shim.process.pid, port).await?;
        Ok(Box::new(stream))
    }

    fn log(&self, uid: &str, container: &str, previous: bool) -> Option<LogFile> {
        let store = &self.shared.store;
        let runs = store.runs(uid, container);
        let run = *runs.iter().rev().nth(usize::from(previous))?;
        let live = self.running(uid, container).ok().map(|(_, live)| live);
        let path = store.log(uid, container, run);
        let progress = live
            .filter(|live| live.run == run)
            .map(|live| follow::progress(&path, live.ended));
        Some(LogFile { path, progress })
    }

    async fn kill(&self, uid: &str, container: &str) -> io::Result<()> {
        let (shim, live) = self.running(uid, container)?;
        shim.ask(Request::Signal {
            container: container.to_owned(),
            run: live.run,
            signal: 9,
        });
        Ok(())
    }

    async fn cut(&self, uid: &str, cut: bool) -> io::Result<()> {
        self.shared.bridge.cut(uid, cut).await
    }
}
