//! How much is done at once.
//!
//! As in Kubernetes, so many requests that read and so many that write are served at a time; who
//! comes on top is told to come again. Requests that last (watches, logs) do not count, and
//! administrators are always served: somebody must be able to look what is wrong.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{ResourceRequest, Verb};
use crate::auth::Identity;
use crate::server::ApiServer;

const MASTERS: &str = "system:masters";
/// What can last as long as its client likes.
const LONG_RUNNING: &[&str] = &["attach", "exec", "log", "portforward", "proxy"];

/// Room for requests.
#[derive(Debug)]
pub(crate) struct Room {
    reading: Semaphore,
    writing: Semaphore,
    /// How many there are room for.
    most: (usize, usize),
}

impl Room {
    pub(crate) fn new(max_reading: usize, max_writing: usize) -> Self {
        // None at all means no limit.
        let permits = |max: usize| match max {
            0 => Semaphore::MAX_PERMITS,
            max => max,
        };
        let most = (permits(max_reading), permits(max_writing));
        Self {
            reading: Semaphore::new(most.0),
            writing: Semaphore::new(most.1),
            most,
        }
    }
}

impl Room {
    /// How many requests that read, and how many that write, are served at this moment.
    pub(super) fn taken(&self) -> (usize, usize) {
        let taken = |most: usize, room: &Semaphore| most.saturating_sub(room.available_permits());
        (
            taken(self.most.0, &self.reading),
            taken(self.most.1, &self.writing),
        )
    }
}

/// There is no room: the client is to come again.
#[derive(Debug)]
pub(crate) struct Full;

impl ApiServer {
    /// Makes room for a request, held until it is answered.
    pub(crate) fn make_room(
        &self,
        who: &Identity,
        request: &ResourceRequest,
    ) -> Result<Option<SemaphorePermit<'_>>, Full> {
        let lasts = request.verb == Verb::Watch
            || request
                .subresource
                .as_deref()
                .is_some_and(|name| LONG_RUNNING.contains(&name));
        if lasts {
            return Ok(None);
        }
        let room = if request.verb.writes() {
            &self.room().writing
        } else {
            &self.room().reading
        };
        match room.try_acquire() {
            Ok(permit) => Ok(Some(permit)),
            Err(_) if who.groups.iter().any(|group| group == MASTERS) => Ok(None),
            Err(_) => Err(Full),
        }
    }
}
