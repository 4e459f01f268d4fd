//! The runtime of pods that are held by shims.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use windlass::testing::Environment as Surroundings;

use super::attendance::{self, Attendance, KILL};
use super::pods::{Entry, Pods};
use super::{Containment, attach, end_former, follow};
use crate::env::Environment;
use crate::folder;
use crate::runtime::{Adopted, Connection, Execution, Launch, LogFile, Reports, Runtime, Session};
use crate::shim::{self, Request};
use crate::store::Store;

/// Runs containers, each pod held by a shim. Clones are the same runtime.
#[derive(Debug)]
pub(crate) struct ContainedRuntime<C> {
    pods: Arc<Pods<C>>,
}

impl<C> Clone for ContainedRuntime<C> {
    fn clone(&self) -> Self {
        Self {
            pods: self.pods.clone(),
        }
    }
}

impl<C: Containment> ContainedRuntime<C> {
    /// `shim` is how a program is called to become a shim, without the subcommand.
    pub(crate) fn new(store: Store, shim: Vec<OsString>, containment: C) -> Self {
        let pods = Pods {
            containment,
            store,
            shim,
            clock: OnceLock::new(),
            draining: AtomicBool::new(false),
            entries: Mutex::default(),
        };
        Self {
            pods: Arc::new(pods),
        }
    }

    /// What keeps its pods apart.
    pub(crate) fn containment(&self) -> &C {
        &self.pods.containment
    }
}

impl<C: Containment> Runtime for ContainedRuntime<C> {
    async fn begin(&self, surroundings: &Surroundings) -> io::Result<()> {
        let pods = &self.pods;
        let _ = pods.clock.set(surroundings.clock.clone());
        pods.draining.store(false, Ordering::SeqCst);
        let mut kept = BTreeMap::new();
        let mut held_by = BTreeMap::new();
        for (uid, note) in pods.store.pods()? {
            let (shim, found) = match shim::find(&pods.store.pod(&uid)).await {
                // It was killed before the pod had its network, or after the pod had ended.
                Some((shim, held)) if held.is_empty() => {
                    shim.end().await;
                    (None, Vec::new())
                }
                Some((shim, held)) => {
                    held_by.insert(uid.clone(), shim.process.pid());
                    (Some(shim), held)
                }
                None => (None, Vec::new()),
            };
            let entry = Entry {
                note,
                shim,
                containers: BTreeMap::new(),
                found,
            };
            if entry.shim.is_none() {
                pods.containment.leave(&uid, true).await;
            }
            kept.insert(uid, entry);
        }
        pods.containment.sweep(&held_by).await;
        *pods.lock() = kept;
        Ok(())
    }

    fn adopt(&self, uid: &str, reports: &Reports) -> Vec<Adopted> {
        let (shim, found) = {
            let mut pods = self.pods.lock();
            let entry = pods.get_mut(uid);
            let Some((shim, entry)) = entry.and_then(|entry| Some((entry.shim.clone()?, entry)))
            else {
                return Vec::new();
            };
            (shim, std::mem::take(&mut entry.found))
        };
        let mut adopted = Vec::new();
        for held in found {
            let ended = held.exit.map(|exit| exit.termination(held.started_at));
            if ended.is_none() {
                let news = shim.follow(&held.container, held.run);
                let attendance = Attendance::of(&self.pods, uid, &held, shim.clone(), news);
                let (pods, reports) = (self.pods.clone(), reports.clone());
                tokio::spawn(async move { attendance.attend(&pods, &reports).await });
            }
            adopted.push(Adopted {
                container: held.container,
                run: held.run,
                id: format!("{}://{}", self.pods.containment.scheme(), held.id),
                image_id: held.image_id,
                at: held.started_at,
                ended,
            });
        }
        adopted
    }

    async fn release(&self, uid: &str) {
        let shim = {
            let mut pods = self.pods.lock();
            let entry = pods.get_mut(uid);
            entry
                .filter(|entry| entry.containers.is_empty())
                .and_then(|entry| entry.shim.take())
        };
        if let Some(shim) = shim {
            let orderly = shim.end().await;
            self.pods.containment.leave(uid, orderly).await;
        }
    }

    async fn set_up(&self, pod: &Pod) -> io::Result<IpAddr> {
        if self.is_draining() {
            return Err(io::Error::other("the node is being stopped"));
        }
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let note = self.pods.note(pod, uid)?;
        if self.pods.shim(uid).is_none() {
            let shim = self.pods.make(pod, uid, &note).await?;
            let kept = match self.pods.lock().get_mut(uid) {
                Some(entry) if !self.is_draining() => {
                    entry.shim = Some(shim.clone());
                    true
                }
                _ => false,
            };
            if !kept {
                let orderly = shim.end().await;
                self.pods.containment.leave(uid, orderly).await;
                return Err(io::Error::other("the pod is gone"));
            }
        }
        Ok(note.address.into())
    }

    fn environment(&self, pod: &Pod, address: IpAddr) -> Environment {
        self.pods.containment.environment(pod, address)
    }

    fn start(&self, launch: Launch, reports: Reports) {
        if !self.is_draining() {
            tokio::spawn(attendance::run(self.pods.clone(), launch, reports));
        }
    }

    fn stop(&self, uid: &str, container: &str, grace: Duration) {
        if let Some(entry) = self.pods.lock().get(uid)
            && let Some(live) = entry.containers.get(container)
        {
            let _ = live.stop.send(grace);
        }
    }

    async fn tear_down(&self, uid: &str) {
        let entry = self.pods.lock().remove(uid);
        let orderly = match entry.as_ref().map(|entry| &entry.shim) {
            Some(Some(shim)) => shim.end().await,
            // It was let go of.
            Some(None) => true,
            // Of a former life, perhaps, and not looked for yet.
            None => end_former(&self.pods.store, uid).await,
        };
        self.pods.containment.leave(uid, orderly).await;
        let forgotten = match self.pods.store.set_aside(uid) {
            Ok(Some(aside)) => tokio::task::spawn_blocking(move || folder::remove_all(&aside))
                .await
                .unwrap_or(Ok(())),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = forgotten {
            tracing::warn!(%error, uid, "cannot remove the folder of a pod");
        }
    }

    fn known(&self) -> io::Result<Vec<String>> {
        let pods = self.pods.store.pods()?;
        Ok(pods.into_iter().map(|(uid, _)| uid).collect())
    }

    async fn drain(&self, limit: Duration) {
        self.pods.draining.store(true, Ordering::SeqCst);
        self.pods.stop_all(limit).await;
        let shims: Vec<_> = {
            let mut pods = self.pods.lock();
            pods.iter_mut()
                .filter_map(|(uid, entry)| Some((uid.clone(), entry.shim.take()?)))
                .collect()
        };
        let ending = shims.iter().map(|(uid, shim)| async move {
            let orderly = shim.end().await;
            self.pods.containment.leave(uid, orderly).await;
        });
        futures::future::join_all(ending).await;
        self.pods.containment.sweep(&BTreeMap::new()).await;
    }

    fn is_draining(&self) -> bool {
        self.pods.draining.load(Ordering::SeqCst)
    }

    async fn exec(&self, uid: &str, container: &str, command: Execution) -> io::Result<Session> {
        let (_, live) = self.pods.running(uid, container)?;
        live.visited.store(true, Ordering::Relaxed);
        let folder = self.pods.store.run(uid, container, live.run);
        let id = attendance::id(uid, container, live.run);
        self.pods
            .containment
            .exec(&id, &folder, &command, live.ended)
    }

    async fn attach(&self, uid: &str, container: &str, stdin: bool) -> io::Result<Session> {
        let (shim, live) = self.pods.running(uid, container)?;
        attach::attach(shim, container, &live, stdin).await
    }

    async fn connect(&self, uid: &str, port: u16) -> io::Result<Box<dyn Connection>> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the pod's shim is gone");
        let shim = self.pods.shim(uid).ok_or_else(gone)?;
        let note = self.pods.lock().get(uid).map(|entry| entry.note.clone());
        let (note, pid) = (note.ok_or_else(gone)?, shim.process.pid());
        self.pods.containment.connect(&note, pid, port).await
    }

    fn log(&self, uid: &str, container: &str, previous: bool) -> Option<LogFile> {
        let store = &self.pods.store;
        let runs = store.runs(uid, container);
        let run = *runs.iter().rev().nth(usize::from(previous))?;
        let live = self.pods.running(uid, container).ok().map(|(_, live)| live);
        let path = store.log(uid, container, run);
        let progress = live
            .filter(|live| live.run == run)
            .map(|live| follow::progress(&path, live.ended));
        Some(LogFile { path, progress })
    }

    async fn kill(&self, uid: &str, container: &str) -> io::Result<()> {
        let (shim, live) = self.pods.running(uid, container)?;
        shim.ask(Request::Signal {
            container: container.to_owned(),
            run: live.run,
            signal: KILL,
        });
        Ok(())
    }

    async fn cut(&self, uid: &str, cut: bool) -> io::Result<()> {
        self.pods.containment.cut(uid, cut).await
    }
}
