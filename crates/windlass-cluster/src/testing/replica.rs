//! [`Replica`]: one of several processes of the same operator, of which one leads.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use windlass::manifests::leader;
use windlass::{
    Operator,
    run::{Launch, LeaderElection, Running},
    testing::{Clock, Environment},
};

use super::cluster::TestCluster;
use crate::operators::{self, Account};

/// A replica of an operator. Dropped, it is killed: it gives nothing back.
pub struct Replica {
    running: Running,
}

impl Replica {
    /// Whether it may write.
    pub fn leads(&self) -> bool {
        self.running.leads()
    }

    /// Ends it as a signal would: it finishes what it does, and gives the lease back.
    pub async fn stop(self) {
        self.running.stop().await;
    }

    /// Waits until it has lost the lease.
    pub async fn lost(&self) {
        self.running.lost().await;
    }

    /// Kills it.
    pub fn kill(self) {
        drop(self);
    }
}

impl TestCluster {
    /// Runs a replica of an operator, whose clock is wrong by so much.
    pub async fn start_replica(
        &self,
        operator: &Operator,
        identity: &str,
        skew: SignedDuration,
    ) -> Replica {
        let account = Account::of(operator);
        let client = self.client();
        let admitted = async {
            operators::install(&client, operator).await?;
            operators::admit(&client, operator, &account).await?;
            let description = operator.description();
            let (role, binding) = leader::role(&description, &account.namespace);
            let params = PatchParams::apply("windlass").force();
            let roles: Api<Role> = Api::namespaced(client.clone(), &account.namespace);
            let (name, patch) = (role.name_any(), Patch::Apply(&role));
            roles.patch(&name, &params, &patch).await?;
            let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), &account.namespace);
            let patch = Patch::Apply(&binding);
            bindings.patch(&name, &params, &patch).await
        };
        if let Err(error) = admitted.await {
            panic!("cannot admit a replica of {}: {error}", operator.name());
        }
        let environment = self.environment();
        let now = environment.clock.now();
        let environment = Environment {
            clock: Clock::starting_at(now.checked_add(skew).unwrap_or(Timestamp::MAX)),
            ..environment.clone()
        };
        let election = LeaderElection::new(account.namespace.as_str(), operator.name(), identity);
        let launch = Launch {
            leader_election: Some(election),
            ..Launch::default()
        };
        let client = self.client_of(account.identity());
        let running = operator.launch(client, environment, launch);
        self.settle().await;
        Replica { running }
    }
}
