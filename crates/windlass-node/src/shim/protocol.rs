//! What node and shim say to each other.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::pod::Termination;
use crate::runtime::Part;

/// What a pod's shim is made from: `shim-config.json` in its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Config {
    /// Its containers are plain processes.
    Process,
    /// Its containers are in namespaces.
    Sandbox(Sandbox),
}

/// The namespaces of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sandbox {
    /// The host name of the pod.
    pub(crate) hostname: String,
    /// Whether it has a network namespace of its own.
    pub(crate) own_network: bool,
    /// The OCI runtime.
    pub(crate) oci: PathBuf,
    /// Where that keeps its state.
    pub(crate) oci_root: PathBuf,
    /// Whether the containers share one PID namespace.
    pub(crate) share_processes: bool,
}

/// What the node asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Say what you hold; the first thing of each connection.
    Hello,
    /// Start a container. A former run of it that ended is forgotten: its end has been heard of.
    Start(Start),
    /// Send a signal to its first process; 9 ends all of its processes.
    Signal {
        container: String,
        run: i32,
        signal: i32,
    },
    /// Tell its terminal how large the window is.
    Resize {
        container: String,
        columns: u16,
        rows: u16,
    },
    /// End everything, and then yourself.
    End,
}

/// A container to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) container: String,
    pub(crate) run: i32,
    /// The runtime's name for this run.
    pub(crate) id: String,
    pub(crate) image_id: String,
    /// The folder with the description of the run; it is removed when the run is over.
    pub(crate) folder: PathBuf,
    /// What the root file system is an overlay of, where it has one.
    pub(crate) lower: Option<String>,
    /// Parts of volumes, by the paths at which the description expects them.
    #[serde(default)]
    pub(crate) parts: Vec<(PathBuf, Part)>,
    pub(crate) log: PathBuf,
    /// Whether its standard input is kept open.
    pub(crate) stdin: bool,
    /// Whether the first who types ends its input.
    pub(crate) stdin_once: bool,
    /// Whether it has a terminal.
    pub(crate) terminal: bool,
}

/// What the shim tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Everything it holds; the first event of each connection.
    Hello(Vec<Held>),
    /// A container runs.
    Started(Held),
    /// A container could not be started.
    Failed {
        container: String,
        run: i32,
        message: String,
    },
    /// A container ended.
    Exited {
        container: String,
        run: i32,
        #[serde(flatten)]
        exit: Exit,
    },
}

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exit {
    /// Its exit code; 128 + n when a signal ended it.
    pub(crate) code: i32,
    pub(crate) at: Timestamp,
    /// Whether a process of it was killed because it wanted more memory than it may have.
    #[serde(default)]
    pub(crate) out_of_memory: bool,
}

impl Exit {
    /// The end of a run that began at `started_at`, for the pod's status.
    pub(crate) fn termination(self, started_at: Timestamp) -> Termination {
        let mut termination = Termination::exited(self.code, started_at, self.at);
        if self.out_of_memory {
            "OOMKilled".clone_into(&mut termination.reason);
        }
        termination
    }
}

/// A container that the shim knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) container: String,
    pub(crate) run: i32,
    pub(crate) id: String,
    pub(crate) image_id: String,
    pub(crate) pid: i32,
    pub(crate) started_at: Timestamp,
    /// Whether it reads what those who join it type.
    pub(crate) stdin: bool,
    /// Whether it has a terminal.
    pub(crate) terminal: bool,
    /// How it ended, if it has.
    pub(crate) exit: Option<Exit>,
}

impl Held {
    /// A run that has just begun.
    pub(crate) fn of(start: &Start, pid: i32, started_at: Timestamp) -> Self {
        Self {
            container: start.container.clone(),
            run: start.run,
            id: start.id.clone(),
            image_id: start.image_id.clone(),
            pid,
            started_at,
            stdin: start.stdin,
            terminal: start.terminal,
            exit: None,
        }
    }
}

impl Event {
    /// The run that the event is about.
    pub(crate) fn run(&self) -> Option<(&str, i32)> {
        match self {
            Self::Hello(_) => None,
            Self::Started(held) => Some((&held.container, held.run)),
            Self::Failed { container, run, .. } | Self::Exited { container, run, .. } => {
                Some((container, *run))
            }
        }
    }
}
