//! One container of the pod, from its start to its end, whatever contains it.

use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;

use super::protocol::{Config, Exit, Held, Start};
use super::stream::{Ends, Streams};
use super::{oci, plain};
use crate::folder;
use crate::log::Writer;

/// How long to wait for the last output of a container whose processes are all gone.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A container whose first process exists.
pub(super) struct Running {
    pub(super) held: Held,
    pub(super) streams: Streams,
    copying: JoinHandle<()>,
    first: First,
}

/// The first process of a container.
pub(super) enum First {
    Plain(Box<plain::First>),
    Contained(oci::First),
}

/// Whom signals are sent to.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Plain(plain::Target),
    Contained(oci::Target),
}

/// Starts a container; says why when that cannot be done.
pub(super) async fn start(
    config: &Config,
    holder: Option<i32>,
    start: &Start,
) -> Result<Running, String> {
    let log = Writer::create(&start.log, windlass::testing::Clock::default())
        .map_err(|error| format!("cannot write {}: {error}", start.log.display()))?;
    let started = match config {
        Config::Process => {
            let started = plain::start(start);
            started.map(|(first, ends)| (First::Plain(Box::new(first)), ends))
        }
        Config::Sandbox(sandbox) => {
            let started = oci::start(sandbox, holder, start).await;
            started.map(|(first, ends)| (First::Contained(first), ends))
        }
    };
    match started {
        Ok((first, ends)) => Ok(Running::new(start, first, ends, log)),
        Err(message) => {
            clean_up(config, start).await;
            Err(message)
        }
    }
}

impl Running {
    fn new(start: &Start, first: First, ends: Ends, log: Writer) -> Self {
        let pid = match &first {
            First::Plain(first) => first.pid(),
            First::Contained(first) => first.pid(),
        };
        let (streams, copying) = ends.copy_to(log, start.stdin_once);
        Self {
            held: Held::of(start, pid, Timestamp::now()),
            streams,
            copying,
            first,
        }
    }

    /// Waits for the end of the container; nothing of it is left afterwards. `others` are the
    /// first processes of the containers that run beside it.
    pub(super) async fn ended(
        self,
        config: &Config,
        start: &Start,
        others: impl Fn() -> Vec<i32>,
    ) -> Exit {
        let ended = match self.first {
            First::Plain(first) => first.ended(others).await,
            First::Contained(first) => first.ended().await,
        };
        let mut copying = self.copying;
        if tokio::time::timeout(LAST_WORDS, &mut copying)
            .await
            .is_err()
        {
            copying.abort();
            eprintln!("the last output of {} is lost", start.id);
        }
        clean_up(config, start).await;
        ended
    }

    /// What sends signals to the container.
    pub(super) fn target(&self) -> Target {
        match &self.first {
            First::Plain(first) => Target::Plain(first.target()),
            First::Contained(first) => Target::Contained(first.target()),
        }
    }
}

impl Target {
    pub(super) fn signal(&self, number: i32) {
        match self {
            Self::Plain(target) => target.signal(number),
            Self::Contained(target) => target.signal(number),
        }
    }
}

/// Takes away what a run leaves.
async fn clean_up(config: &Config, start: &Start) {
    if let Config::Sandbox(sandbox) = config {
        oci::clean_up(sandbox, start).await;
    }
    if let Err(error) = folder::remove_all(&start.folder) {
        eprintln!("cannot remove the folder of {}: {error}", start.id);
    }
}
