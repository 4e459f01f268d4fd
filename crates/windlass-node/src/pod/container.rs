//! What is known about one container.

use jiff::Timestamp;

/// Where a container is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has never been started on this node.
    Fresh,
    /// It could not be started, for a reason that may go away.
    Refused {
        /// What stood in the way.
        refusal: Refusal,
        /// The sentence for people.
        message: String,
        /// How often it was tried.
        attempts: u32,
        /// When to try again.
        retry_at: Timestamp,
    },
    /// The runtime was asked to start it and has not answered yet.
    Starting,
    /// It runs.
    Running(Run),
    /// It ended.
    Exited {
        /// How.
        termination: Termination,
        /// When a restart, if the policy wants one, may happen.
        restart_at: Timestamp,
    },
}

/// What kept a container from being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No program stands for its image.
    Image,
    /// Something its environment is made from is missing.
    Configuration,
    /// A volume of its pod cannot be had.
    Volume,
    /// What the containers of its pod share cannot be had.
    Sandbox,
}

/// A container that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Since when.
    pub started_at: Timestamp,
    /// What its probes say.
    pub health: Health,
    /// What is to be done right after its start is still being done; until then it does not count
    /// as running.
    pub hooking: bool,
    /// The time at which it is killed, once it has been asked to end.
    pub killed_at: Option<Timestamp>,
}

/// What the probes of a container say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// Its startup probe succeeded, or it has none.
    pub started: bool,
    /// Its readiness probe succeeds, or it has none.
    pub ready: bool,
    /// Its liveness or startup probe failed for good, and this is why: it must be restarted.
    pub unhealthy: Option<String>,
}

impl Health {
    /// A container without probes, from its first moment.
    pub fn good() -> Self {
        Self {
            started: true,
            ready: true,
            unhealthy: None,
        }
    }
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Termination {
    /// Its exit code; 128 + n when a signal ended it.
    pub exit_code: i32,
    /// `Completed`, `Error`, or why it never ran.
    pub reason: String,
    /// A sentence for people, when there is something to say.
    pub message: Option<String>,
    /// When it had been started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
    /// The runtime's name for that run.
    pub id: Option<String>,
}

impl Termination {
    /// The end of a container that had run.
    pub fn exited(exit_code: i32, started_at: Timestamp, finished_at: Timestamp) -> Self {
        let reason = if exit_code == 0 { "Completed" } else { "Error" };
        Self {
            exit_code,
            reason: reason.to_owned(),
            message: None,
            started_at: Some(started_at),
            finished_at,
            id: None,
        }
    }

    /// The end of a container whose program could not be executed.
    pub fn not_executed(message: String, at: Timestamp) -> Self {
        Self {
            exit_code: 128,
            reason: "StartError".to_owned(),
            message: Some(message),
            started_at: None,
            finished_at: at,
            id: None,
        }
    }

    /// The end of a container that was running when the node itself stopped.
    pub fn lost(started_at: Option<Timestamp>, at: Timestamp) -> Self {
        Self {
            exit_code: 137,
            reason: "ContainerStatusUnknown".to_owned(),
            message: Some("the node was restarted while the container was running".to_owned()),
            started_at,
            finished_at: at,
            id: None,
        }
    }
}
