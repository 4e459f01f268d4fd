//! What every test cluster begins with, made once per process: a cluster whose controllers have
//! nothing left to do and whose node is ready, before anybody used it.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

use windlass_apiserver::Snapshot;

use super::cluster::TestCluster;

/// No test has it: what it makes has uids that are not made again.
const SEED: u64 = 0x7069_7374_696e_6531;

static SNAPSHOT: OnceLock<Snapshot> = OnceLock::new();

/// What every test cluster begins with.
pub(super) fn snapshot() -> &'static Snapshot {
    SNAPSHOT.get_or_init(|| {
        // On a runtime of its own: whichever test comes first must not begin at another time.
        match thread::spawn(make).join() {
            Ok(snapshot) => snapshot,
            Err(panic) => resume_unwind(panic),
        }
    })
}

fn make() -> Snapshot {
    super::paused_runtime().block_on(async { TestCluster::made(SEED, None).await.snapshot() })
}
