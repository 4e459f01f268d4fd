//! How much is done at once.
//!
//! As in Kubernetes, so many requests that read and so many that write are served at a time; one
//! that comes on top is answered 429, and its client tries again. Administrators are always served:
//! they must be able to see what is wrong.
//!
//! What lasts as long as a client likes must not keep others out, so it does not count there:
//! watches and streams, and the time in which a body arrives. Those are counted per user instead.
//!
//! A large body makes a tree that is a hundred times as large, at worst, and takes a core for a
//! while. So only so much of them is worked on at a time, and of one user a part of that; the others
//! wait, holding no more than their bytes and nobody's place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::{ResourceRequest, Verb};
use crate::auth::Identity;
use crate::server::ApiServer;

const MASTERS: &str = "system:masters";
/// What can last as long as its client likes.
const LONG_RUNNING: &[&str] = &["attach", "exec", "log", "portforward", "proxy"];
/// How many bodies of one user may be on their way.
const BODIES_PER_USER: usize = 100;
/// How many watches and streams one user may have: those of ten full connections.
const LASTING_PER_USER: usize = 2_500;
/// From which size on, in bytes, a body is a large one.
const LARGE: usize = 32 * 1024;
/// How many KiB of large bodies are worked on at a time: of one user, and of all.
const LARGE_PER_USER: usize = 6 * 1024;
const LARGE_OF_ALL: usize = 32 * 1024;
/// How long a large body may wait for others to be worked on.
const LARGE_TIMEOUT: Duration = Duration::from_mins(1);

/// Room for requests.
#[derive(Debug)]
pub(crate) struct Room {
    reading: Semaphore,
    writing: Semaphore,
    /// How many there are room for.
    most: (usize, usize),
    bodies: PerUser,
    lasting: PerUser,
    large: Arc<Semaphore>,
    large_of: Mutex<HashMap<String, Arc<Semaphore>>>,
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
            bodies: PerUser::new(BODIES_PER_USER),
            lasting: PerUser::new(LASTING_PER_USER),
            large: Arc::new(Semaphore::new(LARGE_OF_ALL)),
            large_of: Mutex::default(),
        }
    }

    /// How many requests that read, and how many that write, are served at this moment.
    pub(super) fn taken(&self) -> (usize, usize) {
        let taken = |most: usize, room: &Semaphore| most.saturating_sub(room.available_permits());
        (
            taken(self.most.0, &self.reading),
            taken(self.most.1, &self.writing),
        )
    }
}

/// The part of the room for large bodies that one of them takes.
pub(super) type Large = [OwnedSemaphorePermit; 2];

/// There is no room: the client is to come again.
#[derive(Debug)]
pub(crate) struct Full;

/// How much each user has of something.
#[derive(Debug)]
struct PerUser {
    counts: Mutex<HashMap<String, usize>>,
    most: usize,
}

impl PerUser {
    fn new(most: usize) -> Self {
        Self {
            counts: Mutex::default(),
            most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one more, unless the user has all there may be.
    fn take(&self, user: &str) -> Result<(), Full> {
        let mut counts = self.lock();
        let count = counts.entry(user.to_owned()).or_default();
        if *count >= self.most {
            return Err(Full);
        }
        *count += 1;
        Ok(())
    }

    fn give_back(&self, user: &str) {
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(user);
            }
        }
    }
}

/// Something a user has, until it is dropped.
pub(crate) struct Place {
    server: ApiServer,
    of: fn(&Room) -> &PerUser,
    user: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        (self.of)(self.server.room()).give_back(&self.user);
    }
}

impl ApiServer {
    /// Makes room for a request, held until it is answered.
    pub(crate) fn make_room(
        &self,
        who: &Identity,
        request: &ResourceRequest,
    ) -> Result<Option<SemaphorePermit<'_>>, Full> {
        if lasts(request) {
            return Ok(None);
        }
        let room = if request.verb.writes() {
            &self.room().writing
        } else {
            &self.room().reading
        };
        match room.try_acquire() {
            Ok(permit) => Ok(Some(permit)),
            Err(_) if is_master(who) => Ok(None),
            Err(_) => Err(Full),
        }
    }

    /// A place for a body that is on its way, held until it is there.
    pub(super) fn place_for_body(&self, who: &Identity) -> Result<Option<Place>, Full> {
        self.place(who, |room| &room.bodies)
    }

    /// Waits until there is room to work on a body of so many bytes; held until it is answered.
    pub(super) async fn room_for_large(
        &self,
        who: &Identity,
        bytes: usize,
    ) -> Result<Option<Large>, Full> {
        if bytes < LARGE || is_master(who) {
            return Ok(None);
        }
        let room = self.room();
        let kib = u32::try_from(bytes.div_ceil(1024)).map_err(|_| Full)?;
        let own = {
            let mut users = room.large_of.lock().unwrap_or_else(PoisonError::into_inner);
            // Who has nothing large under way is forgotten.
            users.retain(|_, room| Arc::strong_count(room) > 1);
            let own = users.entry(who.user.clone());
            own.or_insert_with(|| Arc::new(Semaphore::new(LARGE_PER_USER)))
                .clone()
        };
        let both = async {
            let own = own.acquire_many_owned(kib).await?;
            let all = room.large.clone().acquire_many_owned(kib).await?;
            Ok::<_, AcquireError>([own, all])
        };
        match tokio::time::timeout(LARGE_TIMEOUT, both).await {
            Ok(Ok(both)) => Ok(Some(both)),
            _ => Err(Full),
        }
    }

    /// A place for a request that lasts, held for as long as it does.
    pub(super) fn place_to_last(
        &self,
        who: &Identity,
        request: &ResourceRequest,
    ) -> Result<Option<Place>, Full> {
        if lasts(request) {
            self.place(who, |room| &room.lasting)
        } else {
            Ok(None)
        }
    }

    fn place(&self, who: &Identity, of: fn(&Room) -> &PerUser) -> Result<Option<Place>, Full> {
        if is_master(who) {
            return Ok(None);
        }
        of(self.room()).take(&who.user)?;
        Ok(Some(Place {
            server: self.clone(),
            of,
            user: who.user.clone(),
        }))
    }
}

fn is_master(who: &Identity) -> bool {
    who.groups.iter().any(|group| group == MASTERS)
}

fn lasts(request: &ResourceRequest) -> bool {
    request.verb == Verb::Watch
        || request
            .subresource
            .as_deref()
            .is_some_and(|name| LONG_RUNNING.contains(&name))
}
