//! An operator that runs, and is started again when it is killed.

use std::sync::Arc;

use kube::Client;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use windlass::{Operator, testing::Environment};

use super::cluster::TestCluster;
use super::faults::Faults;

/// Makes an operator that belongs to one cluster.
pub(super) type Maker = Arc<dyn Fn(&TestCluster) -> Operator + Send + Sync>;
/// Where an operator of a cluster comes from: it is made for each, or it is the same in all.
pub(super) type Origin = Result<Maker, Arc<Operator>>;

/// A supervised operator. Dropping it ends it for good.
pub(super) struct Started {
    operator: Arc<Operator>,
    /// How it is made for another cluster, if it belongs to this one.
    pub(super) maker: Option<Maker>,
    user: String,
    crash: Arc<Notify>,
    supervisor: JoinHandle<()>,
}

impl Started {
    /// Runs `operator` as `user`, whose client is given, until this is dropped.
    pub(super) fn new(
        operator: Arc<Operator>,
        user: String,
        client: Client,
        environment: Environment,
        faults: Arc<Faults>,
    ) -> Self {
        let crash = Arc::new(Notify::new());
        faults.register(&user, crash.clone());
        let (killed, runs, name) = (crash.clone(), operator.clone(), user.clone());
        let supervisor = tokio::spawn(async move {
            loop {
                let running = runs.start(client.clone(), environment.clone());
                tokio::select! {
                    biased;
                    () = killed.notified() => {}
                    () = running.lost() => {}
                }
                drop(running);
                faults.revive(&name);
            }
        });
        Self {
            operator,
            maker: None,
            user,
            crash,
            supervisor,
        }
    }

    pub(super) fn operator(&self) -> Arc<Operator> {
        self.operator.clone()
    }

    /// Who it is to the API server.
    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// Notified, it kills the operator, which is then started again.
    pub(super) fn crash(&self) -> Arc<Notify> {
        self.crash.clone()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}
