//! [`Elector`]: acquires the lease, renews it, gives it back.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::LeaderElection;
use crate::{
    client::{Gate, Leads},
    run::Metrics,
    testing::Environment,
};

/// One replica's part in the election.
pub(crate) struct Elector {
    pub(crate) election: LeaderElection,
    /// Not the guarded client: the lease is what the guard goes by.
    pub(crate) client: Client,
    pub(crate) gate: Gate,
    pub(crate) environment: Environment,
    pub(crate) metrics: Metrics,
    /// Cancelled when this replica begins to lead.
    pub(crate) leading: CancellationToken,
    /// Cancelled when it has lost the lease.
    pub(crate) lost: CancellationToken,
    /// Cancelled by whoever wants the lease given back.
    pub(crate) release: CancellationToken,
}

/// The lease as it was last seen, and when it was seen to be so first.
struct Seen {
    lease: Lease,
    since: Instant,
}

impl Elector {
    /// Takes part until the lease is lost or given back.
    pub(crate) async fn run(self) {
        let name = &self.election.name;
        self.metrics.leads(name, false);
        let mut seen = None;
        tokio::select! {
            biased;
            () = self.release.cancelled() => return,
            () = self.acquire(&mut seen) => {}
        }
        info!(lease = %name, identity = %self.election.identity, "leading");
        self.metrics.leads(name, true);
        self.leading.cancel();
        let given_back = tokio::select! {
            biased;
            () = self.release.cancelled() => true,
            () = self.hold(&mut seen) => false,
        };
        self.gate.set(Leads::No);
        self.metrics.leads(name, false);
        if given_back {
            self.give_back(seen).await;
        } else {
            warn!(lease = %name, identity = %self.election.identity, "lost the lease");
            self.lost.cancel();
        }
    }

    /// Tries until it holds the lease.
    async fn acquire(&self, seen: &mut Option<Seen>) {
        // The first attempt is work; waiting for another replica to go is not.
        let mut busy = Some(self.environment.activity.busy("first try for the lease"));
        loop {
            let sent = Instant::now();
            let attempt = tokio::time::timeout(self.election.renew, self.attempt(seen)).await;
            match attempt {
                Ok(Ok(true)) => return self.extend(sent),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => warn!(%error, "cannot get the lease"),
                Err(_) => warn!("cannot get the lease: no answer"),
            }
            busy.take();
            tokio::time::sleep(self.jittered(self.election.retry)).await;
        }
    }

    /// Renews the lease until that fails for too long.
    async fn hold(&self, seen: &mut Option<Seen>) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.election.retry).await;
            let deadline = renewed + self.election.renew;
            let sent = Instant::now();
            if sent >= deadline {
                return;
            }
            match tokio::time::timeout_at(deadline, self.renew(seen)).await {
                Ok(Ok(true)) => {
                    renewed = sent;
                    self.extend(sent);
                }
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => warn!(%error, "cannot renew the lease"),
            }
        }
    }

    /// This replica may write for so long from when it asked.
    fn extend(&self, sent: Instant) {
        self.gate.set(Leads::until(sent + self.election.renew));
    }

    /// Renews with what is known of the lease; reads it again only when that is not enough.
    async fn renew(&self, seen: &mut Option<Seen>) -> kube::Result<bool> {
        if let Some(known) = seen.as_ref() {
            match self.write(&known.lease).await {
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {}
                answer => {
                    let since = Instant::now();
                    *seen = Some(Seen {
                        lease: answer?,
                        since,
                    });
                    return Ok(true);
                }
            }
        }
        self.metrics.slow_path(&self.election.name);
        self.attempt(seen).await
    }

    /// Takes the lease if it is free, ours, or has been left alone for too long.
    async fn attempt(&self, seen: &mut Option<Seen>) -> kube::Result<bool> {
        let leases = self.leases();
        let Some(lease) = leases.get_opt(&self.election.name).await? else {
            let lease = self.ours(&Lease::default());
            return match leases.create(&PostParams::default(), &lease).await {
                Ok(lease) => {
                    let since = Instant::now();
                    *seen = Some(Seen { lease, since });
                    Ok(true)
                }
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
                Err(error) => Err(error),
            };
        };
        let same = seen.as_ref().filter(|seen| seen.lease.spec == lease.spec);
        let since = same.map_or_else(Instant::now, |seen| seen.since);
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let ours = holder == self.election.identity;
        let free = holder.is_empty() || since.elapsed() > self.patience(&spec);
        let taken = if ours || free {
            match self.write(&lease).await {
                Ok(lease) => Some(lease),
                Err(kube::Error::Api(status)) if status.code == 409 => None,
                Err(error) => return Err(error),
            }
        } else {
            debug!(holder, "somebody else leads");
            None
        };
        let won = taken.is_some();
        *seen = Some(Seen {
            lease: taken.unwrap_or(lease),
            since,
        });
        Ok(won)
    }

    /// How long the holder may be silent: what it promised, and at least what we promise.
    fn patience(&self, spec: &LeaseSpec) -> Duration {
        let promised = spec.lease_duration_seconds.unwrap_or(0);
        let promised = Duration::from_secs(u64::try_from(promised).unwrap_or(0));
        promised.max(self.election.lease)
    }

    /// Writes the lease as ours; a conflict if it has changed.
    async fn write(&self, lease: &Lease) -> kube::Result<Lease> {
        let (name, params) = (&self.election.name, PostParams::default());
        self.leases()
            .replace(name, &params, &self.ours(lease))
            .await
    }

    fn ours(&self, lease: &Lease) -> Lease {
        let now = self.environment.clock.micro_time();
        let spec = lease.spec.clone().unwrap_or_default();
        let changes = spec.holder_identity.as_ref() != Some(&self.election.identity);
        let seconds = i32::try_from(self.election.lease.as_secs()).unwrap_or(i32::MAX);
        let transitions = spec.lease_transitions.unwrap_or(0);
        Lease {
            metadata: ObjectMeta {
                name: Some(self.election.name.clone()),
                namespace: Some(self.election.namespace.clone()),
                ..lease.metadata.clone()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.election.identity.clone()),
                lease_duration_seconds: Some(seconds),
                acquire_time: spec.acquire_time.filter(|_| !changes).or(Some(now.clone())),
                renew_time: Some(now),
                lease_transitions: Some(transitions + i32::from(changes && lease.spec.is_some())),
                ..spec
            }),
        }
    }

    /// Gives the lease back, so that another need not wait until it runs out.
    async fn give_back(&self, seen: Option<Seen>) {
        let Some(Seen { lease, .. }) = seen else {
            return;
        };
        let mut free = self.ours(&lease);
        if let Some(spec) = free.spec.as_mut() {
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
        }
        let (name, params) = (&self.election.name, PostParams::default());
        match self.leases().replace(name, &params, &free).await {
            Ok(_) => info!(lease = %name, "gave the lease back"),
            Err(error) => warn!(lease = %name, %error, "cannot give the lease back"),
        }
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.election.namespace)
    }

    /// Up to a fifth more, so that replicas do not all come at the same moment.
    fn jittered(&self, delay: Duration) -> Duration {
        let fifth = u64::try_from(delay.as_millis() / 5).unwrap_or(0);
        delay + Duration::from_millis(self.environment.random.below(fifth + 1))
    }
}
