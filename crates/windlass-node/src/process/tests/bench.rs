//! A runtime in a folder of its own, and the worker's end of its reports.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use windlass::testing::{Activity, BusyGuard, Environment};

use super::super::FOLDER_MODE;
use super::super::containment::Plain;
use super::super::tree::{Marks, POD_MARK};
use crate::containment::ContainedRuntime;
use crate::env::{Capacity, Facts, Sources, resolve};
use crate::handler::Target;
use crate::image::ImageTable;
use crate::log::{LogOptions, Reader};
use crate::pod::{Health, Termination};
use crate::probe;
use crate::runtime::{Launch, Mail, Note, Report, Reports, Runtime, User};
use crate::scratch::Scratch;
use crate::store::Store;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What is tested.
pub(super) type ProcessRuntime = ContainedRuntime<Plain>;

pub(super) struct Bench {
    pub(super) folder: Scratch,
    pub(super) runtime: ProcessRuntime,
    pub(super) reports: Reports,
    inbox: UnboundedReceiver<(Mail, BusyGuard)>,
    pub(super) notes: Vec<Note>,
}

pub(super) fn runtime(folder: &Scratch) -> ProcessRuntime {
    let store = Store::open(folder.path(), FOLDER_MODE).expect("a store");
    let server = Some(("127.0.0.1".into(), 6443));
    let plain = Plain::new(store.root(), ImageTable::default(), server);
    ProcessRuntime::new(store, super::shim(), plain)
}

impl Bench {
    pub(super) async fn new(name: &str) -> Self {
        let folder = Scratch::new(name);
        let runtime = runtime(&folder);
        runtime
            .begin(&Environment::default())
            .await
            .expect("a beginning");
        let (reports, inbox) = Reports::new(Activity::default());
        Self {
            folder,
            runtime,
            reports,
            inbox,
            notes: Vec::new(),
        }
    }

    /// The uid of a pod, of this test alone: marks are looked for everywhere.
    fn uid(&self, name: &str) -> String {
        let scope = self
            .folder
            .path()
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        format!("{scope}-{name}")
    }

    /// A pod of one container.
    pub(super) fn pod(&self, name: &str, container: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default", "uid": self.uid(name)},
            "spec": {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]},
        }))
        .expect("a pod")
    }

    /// Starts a container and returns its pod's address.
    pub(super) async fn start(&self, pod: &Pod, run: i32) -> IpAddr {
        let address = self.runtime.set_up(pod).await.expect("an address");
        let container: Container = pod.spec.as_ref().expect("a spec").containers[0].clone();
        let pod_ip = address.to_string();
        let facts = Facts {
            pod,
            pod_ip: &pod_ip,
            host_ip: "127.0.0.1",
            node: Capacity::default(),
        };
        let base = self.runtime.environment(pod, address);
        let environment =
            resolve(&container, &facts, &Sources::default(), base).expect("an environment");
        let launch = Launch {
            pod: Arc::new(pod.clone()),
            container,
            run,
            environment,
            mounts: Vec::new(),
            user: User::default(),
        };
        self.runtime.start(launch, self.reports.clone());
        address
    }

    /// The next report that is no note.
    pub(super) async fn report(&mut self) -> Report {
        loop {
            let mail = tokio::time::timeout(PATIENCE, self.inbox.recv()).await;
            match mail.expect("a report in time").expect("a report").0 {
                Mail::Reported(Report::Note(note)) => self.notes.push(note),
                Mail::Reported(report) => return report,
                other => panic!("no report: {other:?}"),
            }
        }
    }

    pub(super) async fn started(&mut self) -> String {
        match self.report().await {
            Report::Started { image_id, .. } => image_id,
            other => panic!("not started: {other:?}"),
        }
    }

    pub(super) async fn exited(&mut self) -> Termination {
        match self.report().await {
            Report::Exited { termination, .. } => termination,
            other => panic!("not exited: {other:?}"),
        }
    }

    pub(super) async fn probed(&mut self) -> Health {
        match self.report().await {
            Report::Probed { health, .. } => health,
            other => panic!("not probed: {other:?}"),
        }
    }

    /// Probes a container that runs.
    pub(super) fn probe(&self, pod: &Pod, address: IpAddr) {
        let target = Target {
            runtime: Arc::new(self.runtime.clone()),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            container: pod.spec.as_ref().expect("a spec").containers[0].clone(),
            address,
        };
        let reports = self.reports.clone();
        tokio::spawn(async move { probe::watch(&target, 0, &reports).await });
    }

    /// A reader of the container's log that follows it.
    pub(super) async fn follow(&self, pod: &str) -> Reader {
        let log = self
            .runtime
            .log(&self.uid(pod), "main", false)
            .expect("a log");
        let options = LogOptions {
            follow: true,
            ..LogOptions::default()
        };
        let now = jiff::Timestamp::now();
        Reader::open(&log.path, &options, now, log.progress)
            .await
            .expect("a reader")
    }

    /// Waits for the container to say something.
    pub(super) async fn line(&self, pod: &str) -> String {
        let mut reader = self.follow(pod).await;
        let piece = tokio::time::timeout(PATIENCE, reader.next())
            .await
            .expect("output in time");
        let piece = piece.expect("readable").expect("some output");
        String::from_utf8(piece.to_vec()).expect("text")
    }

    /// Everything the container has said, once it has ended.
    pub(super) async fn output(&self, pod: &str) -> String {
        let mut reader = self.follow(pod).await;
        let mut all = Vec::new();
        while let Some(piece) = reader.next().await.expect("readable") {
            all.extend_from_slice(&piece);
        }
        String::from_utf8(all).expect("text")
    }
}

impl Drop for Bench {
    /// Pods outlive their runtime; they must not outlive their test.
    fn drop(&mut self) {
        let folder = self.folder.path().to_owned();
        let cleaning = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.and_then(|runtime| runtime.block_on(crate::process::clean_up(&folder)))
        });
        let _ = cleaning.join();
    }
}

/// The processes of a pod that are alive.
pub(super) fn processes(pod: &Pod) -> Vec<i32> {
    let uid = pod.metadata.uid.as_deref().expect("a uid");
    Marks::new(POD_MARK, uid, None).find()
}

/// A container that runs a script.
pub(super) fn script(script: &str) -> Value {
    json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]})
}
