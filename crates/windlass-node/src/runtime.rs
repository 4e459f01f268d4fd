//! What a node needs from whatever really (or seemingly) runs containers.
//!
//! A [`Runtime`] is asked to start and stop containers and answers in its own time, by
//! [`Report`]s to the worker of the pod. Everything that is a decision (when to start, whether to
//! restart, what the status is) is made from those reports by [`crate::pod`], so that all runtimes
//! behave alike.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use windlass::testing::{Activity, BusyGuard, Environment as Surroundings};

use crate::env::{Environment, Sources};
use crate::hook::HookError;
use crate::log::Progress;
use crate::pod::{Eviction, Health, Refusal, Termination};

/// Runs containers.
pub(crate) trait Runtime: Send + Sync + 'static {
    /// Clears away what a former life of the node left behind and cannot be kept. Called before
    /// anything is started.
    fn begin(&self, surroundings: &Surroundings) -> impl Future<Output = io::Result<()>> + Send;

    /// The containers of a pod that have outlived a former life of the node, also those that ended
    /// in between. From now on the ends of the others are reported.
    fn adopt(&self, _uid: &str, _reports: &Reports) -> Vec<Adopted> {
        Vec::new()
    }

    /// Lets go of what a pod needs only while its containers may run: none of them will again.
    fn release(&self, _uid: &str) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Gives a pod what its containers share, and returns its address. Asked before each start.
    fn set_up(&self, pod: &Pod) -> impl Future<Output = io::Result<IpAddr>> + Send;

    /// The variables every container of the pod has, before its own.
    fn environment(&self, pod: &Pod, address: IpAddr) -> Environment;

    /// Starts a container; what comes of it is reported.
    fn start(&self, launch: Launch, reports: Reports);

    /// Asks a running container to end, and kills it when it has not after `grace`. Asking again
    /// with a shorter grace period counts.
    fn stop(&self, uid: &str, container: &str, grace: Duration);

    /// Ends at once whatever is left of a pod, and forgets it.
    fn tear_down(&self, uid: &str) -> impl Future<Output = ()> + Send;

    /// The uids of the pods that are remembered, those of former lives included.
    fn known(&self) -> io::Result<Vec<String>>;

    /// Stops every container, each within its pod's grace period but none later than `limit`, and
    /// starts none any more.
    fn drain(&self, limit: Duration) -> impl Future<Output = ()> + Send;

    /// Whether the node is being stopped: ends of containers are its own doing then.
    fn is_draining(&self) -> bool;

    /// Runs a command in a running container, as its user and in its environment. Whoever drops
    /// the session ends the command. One that cannot be run is a session whose end is an error.
    fn exec(
        &self,
        uid: &str,
        container: &str,
        command: Execution,
    ) -> impl Future<Output = io::Result<Session>> + Send;

    /// Joins what a running container reads and writes. The session ends with the container;
    /// dropping it leaves the container alone.
    fn attach(
        &self,
        uid: &str,
        container: &str,
        stdin: bool,
    ) -> impl Future<Output = io::Result<Session>> + Send;

    /// A connection to a port of a pod, as from inside it.
    fn connect(
        &self,
        uid: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Box<dyn Connection>>> + Send;

    /// The log of the present (or the previous) run of a container.
    fn log(&self, uid: &str, container: &str, previous: bool) -> Option<LogFile>;

    /// Kills a running container, as if by accident: a fault for tests.
    fn kill(&self, uid: &str, container: &str) -> impl Future<Output = io::Result<()>> + Send;

    /// Cuts a pod off the network, or lets it back: a fault for tests. `Unsupported` where pods
    /// have no network of their own.
    fn cut(&self, uid: &str, cut: bool) -> impl Future<Output = io::Result<()>> + Send;
}

/// A container to be started.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) pod: Arc<Pod>,
    pub(crate) container: Container,
    /// The number of the run, from zero.
    pub(crate) run: i32,
    pub(crate) environment: Environment,
    /// What is to be seen at which path, prepared; parents before what lies below them.
    pub(crate) mounts: Vec<Mount>,
    /// Whom it runs as.
    pub(crate) user: User,
}

/// A prepared file or folder of the machine, to be seen at a path of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The volume's name.
    pub(crate) name: String,
    /// Where it is on the machine; it exists.
    pub(crate) source: PathBuf,
    /// Which part of a volume that is, when it is not all of it. A container may put something else
    /// there at any moment, so the runtime must look for it again when it mounts it, and not by its path.
    pub(crate) part: Option<Part>,
    /// Where the container wants it.
    pub(crate) path: String,
    pub(crate) read_only: bool,
}

/// A part of a volume: what a path leads to from the volume's folder, without leaving it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) volume: PathBuf,
    pub(crate) path: PathBuf,
}

/// Whom a container runs as; what is left out is the runtime's (or the image's) choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct User {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    /// `fsGroup` and `supplementalGroups`.
    pub(crate) groups: Vec<u32>,
}

/// A container that ran on although the node had been away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adopted {
    pub(crate) container: String,
    pub(crate) run: i32,
    pub(crate) id: String,
    pub(crate) image_id: String,
    pub(crate) at: Timestamp,
    /// How it ended, if it has.
    pub(crate) ended: Option<Termination>,
}

/// A command for a running container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Execution {
    pub(crate) command: Vec<String>,
    /// With a terminal, standard error comes with standard output.
    pub(crate) tty: bool,
    /// Whether it has an input; otherwise it reads nothing.
    pub(crate) stdin: bool,
}

/// What a program reads; dropping it is the end of the input.
pub(crate) type Input = Box<dyn AsyncWrite + Send + Unpin>;
/// What a program writes, until its end.
pub(crate) type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A connection to a port.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// The ends of a program that somebody talks to.
pub(crate) struct Session {
    pub(crate) stdin: Option<Input>,
    pub(crate) stdout: Option<Output>,
    pub(crate) stderr: Option<Output>,
    /// Columns and rows of its terminal, if it has one.
    pub(crate) resize: Option<mpsc::UnboundedSender<(u16, u16)>>,
    /// How it ended: its exit code, 128 and the number of the signal that ended it. Of an attached
    /// container the code does not matter.
    pub(crate) ended: BoxFuture<'static, io::Result<i32>>,
}

/// The log of a run of a container.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    /// Present when that run still goes on.
    pub(crate) progress: Option<watch::Receiver<Progress>>,
}

impl Launch {
    pub(crate) fn uid(&self) -> &str {
        self.pod.metadata.uid.as_deref().unwrap_or_default()
    }
}

/// What a runtime says about a container.
#[derive(Debug)]
pub(crate) enum Report {
    /// It runs.
    Started {
        container: String,
        id: String,
        image_id: String,
        /// Its health, where the runtime itself knows it; otherwise the node probes it.
        health: Option<Health>,
        at: Timestamp,
    },
    /// It could not be started, for a reason that may go away.
    Refused {
        container: String,
        refusal: Refusal,
        message: String,
    },
    /// What was to be done right after its start has been done, or has failed.
    Hooked {
        container: String,
        run: i32,
        outcome: Result<(), HookError>,
    },
    /// Its probes say something new.
    Probed {
        container: String,
        run: i32,
        health: Health,
    },
    /// It ended.
    Exited {
        container: String,
        run: i32,
        termination: Termination,
    },
    /// The pod must end.
    Evicted(Eviction),
    /// Something a person should know about the pod.
    Note(Note),
}

/// An event about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Note {
    pub(crate) fn normal(reason: &'static str, message: String) -> Self {
        Self {
            warning: false,
            reason,
            message,
        }
    }

    pub(crate) fn warning(reason: &'static str, message: String) -> Self {
        Self {
            warning: true,
            reason,
            message,
        }
    }
}

/// What the worker of a pod hears.
#[derive(Debug)]
pub(crate) enum Mail {
    /// The pod as the API server has it, and what its environment is made from.
    Desired(Box<Pod>, Sources),
    /// Something happened to one of its containers.
    Reported(Report),
    /// The object is gone.
    Gone,
}

/// The way to the worker of one pod. What is on its way counts as work under way.
#[derive(Debug, Clone)]
pub(crate) struct Reports {
    sender: mpsc::UnboundedSender<(Mail, BusyGuard)>,
    activity: Activity,
}

impl Reports {
    pub(crate) fn new(activity: Activity) -> (Self, mpsc::UnboundedReceiver<(Mail, BusyGuard)>) {
        let (sender, inbox) = mpsc::unbounded_channel();
        (Self { sender, activity }, inbox)
    }

    /// Tells the worker; one that has ended does not mind.
    pub(crate) fn send(&self, mail: Mail) {
        let _ = self
            .sender
            .send((mail, self.activity.busy("node: news of a pod")));
    }

    pub(crate) fn report(&self, report: Report) {
        self.send(Mail::Reported(report));
    }
}
