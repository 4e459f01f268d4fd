//! What a node needs from whatever really (or seemingly) runs containers.
//!
//! A [`Runtime`] is asked to start and stop containers and answers in its own time, by
//! [`Report`]s to the worker of the pod. Everything that is a decision (when to start, whether to
//! restart, what the status is) is made from those reports by [`crate::pod`], so that all runtimes
//! behave alike.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::mpsc;
use windlass::{Activity, BusyGuard, Environment as Surroundings};

use crate::env::{Environment, Sources};
use crate::pod::{Eviction, Health, Refusal, Termination};

/// Runs containers.
pub(crate) trait Runtime: Send + Sync + 'static {
    /// Clears away what a former life of the node left behind. Called before anything is started.
    fn begin(&self, surroundings: &Surroundings) -> impl Future<Output = io::Result<()>> + Send;

    /// Gives a pod what its containers share, and returns its address.
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

    /// Whether the node is being stopped: ends of containers are its own doing then.
    fn is_draining(&self) -> bool;
}

/// A container to be started.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) pod: Arc<Pod>,
    pub(crate) container: Container,
    /// The number of the run, from zero.
    pub(crate) run: i32,
    pub(crate) environment: Environment,
    pub(crate) address: IpAddr,
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
        health: Health,
        at: Timestamp,
    },
    /// It could not be started, for a reason that may go away.
    Refused {
        container: String,
        refusal: Refusal,
        message: String,
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
