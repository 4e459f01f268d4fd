//! The runtime that only pretends.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::mpsc::UnboundedSender;
use windlass::testing::Environment as Surroundings;

use super::Delays;
use super::container::{self, Command};
use crate::env::Environment;
use crate::pod::Refusal;
use crate::runtime::{Connection, Execution, Launch, LogFile, Report, Reports, Runtime, Session};

/// Where the addresses of simulated pods begin.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);

#[derive(Debug)]
pub(crate) struct SimulatedRuntime {
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) delays: Delays,
    /// Images that cannot be had, and why.
    pub(super) missing_images: BTreeMap<String, String>,
    /// Why none can be had, if so.
    pub(super) no_images: Option<String>,
    pub(super) pods: BTreeMap<String, SimulatedPod>,
    surroundings: Surroundings,
    addresses: u32,
}

#[derive(Debug)]
pub(super) struct SimulatedPod {
    pub(super) namespace: String,
    pub(super) name: String,
    address: Ipv4Addr,
    /// The way to the pod's worker, once a container was started.
    pub(super) reports: Option<Reports>,
    pub(super) containers: BTreeMap<String, UnboundedSender<Command>>,
}

impl SimulatedRuntime {
    pub(super) fn new(delays: Delays) -> Self {
        Self {
            state: Mutex::new(State {
                delays,
                missing_images: BTreeMap::new(),
                no_images: None,
                pods: BTreeMap::new(),
                surroundings: Surroundings::default(),
                addresses: 0,
            }),
        }
    }

    /// Starts a new life, in which nothing runs yet.
    pub(super) fn surround(&self, surroundings: &Surroundings) {
        let mut state = self.lock();
        state.pods.clear();
        state.surroundings = surroundings.clone();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime for SimulatedRuntime {
    async fn begin(&self, surroundings: &Surroundings) -> io::Result<()> {
        self.surround(surroundings);
        Ok(())
    }

    async fn set_up(&self, pod: &Pod) -> io::Result<IpAddr> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut state = self.lock();
        if let Some(known) = state.pods.get(&uid) {
            return Ok(known.address.into());
        }
        let address = Ipv4Addr::from(u32::from(FIRST) + state.addresses);
        state.addresses += 1;
        let pod = SimulatedPod {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            name: pod.metadata.name.clone().unwrap_or_default(),
            address,
            reports: None,
            containers: BTreeMap::new(),
        };
        state.pods.insert(uid, pod);
        Ok(address.into())
    }

    fn environment(&self, _pod: &Pod, _address: IpAddr) -> Environment {
        Environment::default()
    }

    fn start(&self, launch: Launch, reports: Reports) {
        let mut state = self.lock();
        let image = launch.container.image.as_deref().unwrap_or_default();
        let missing = state.missing_images.get(image);
        if let Some(message) = missing.or(state.no_images.as_ref()) {
            return reports.report(Report::Refused {
                container: launch.container.name,
                refusal: Refusal::Image,
                message: message.clone(),
            });
        }
        let (delays, surroundings) = (state.delays, state.surroundings.clone());
        let Some(pod) = state.pods.get_mut(launch.uid()) else {
            return;
        };
        pod.reports = Some(reports.clone());
        let name = launch.container.name.clone();
        let commands = container::spawn(launch, delays, surroundings, reports);
        pod.containers.insert(name, commands);
    }

    fn stop(&self, uid: &str, container: &str, grace: Duration) {
        if let Some(pod) = self.lock().pods.get(uid)
            && let Some(commands) = pod.containers.get(container)
        {
            let _ = commands.send(Command::Stop(grace));
        }
    }

    async fn tear_down(&self, uid: &str) {
        // Without anybody to command them, its containers end.
        self.lock().pods.remove(uid);
    }

    fn known(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().pods.keys().cloned().collect())
    }

    async fn drain(&self, _limit: Duration) {
        self.lock().pods.clear();
    }

    fn is_draining(&self) -> bool {
        false
    }

    async fn exec(&self, _uid: &str, _container: &str, _command: Execution) -> io::Result<Session> {
        Err(nothing_runs())
    }

    async fn attach(&self, _uid: &str, _container: &str, _stdin: bool) -> io::Result<Session> {
        Err(nothing_runs())
    }

    async fn connect(&self, _uid: &str, _port: u16) -> io::Result<Box<dyn Connection>> {
        Err(nothing_runs())
    }

    fn log(&self, _uid: &str, _container: &str, _previous: bool) -> Option<LogFile> {
        None
    }

    async fn kill(&self, uid: &str, container: &str) -> io::Result<()> {
        let state = self.lock();
        let pod = state.pods.get(uid);
        let commands = pod.and_then(|pod| pod.containers.get(container));
        match commands.map(|commands| commands.send(Command::Exit(137))) {
            Some(Ok(())) => Ok(()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    async fn cut(&self, uid: &str, cut: bool) -> io::Result<()> {
        let state = self.lock();
        let pod = state.pods.get(uid);
        for commands in pod.iter().flat_map(|pod| pod.containers.values()) {
            let _ = commands.send(Command::Cut(cut));
        }
        pod.map(|_| ())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn nothing_runs() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "nothing really runs on a simulated node",
    )
}
