//! A node that runs nothing, for tests.
//!
//! Pods bound to it become Running and Ready after settable delays of virtual time, keep running
//! until they are deleted, and are then gone after their (simulated) last words. A
//! [`SimulatedNode`] lets a test crash, stop, fail or hold back what seems to run. Decisions are
//! those of the real node: the same restart policies, the same back-off, the same status. Nothing
//! is random, and nothing takes real time.

mod container;
mod handle;
mod runtime;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use windlass::{
    Operator, Result,
    handle::{Access, Verb},
    run::TaskContext,
};

use crate::agent::{self, Agency, Directory, Identity};
use crate::env::Capacity;
use crate::fault::Faults;
use crate::registration::{self, Facts, System};
pub use handle::{NotRunning, SimulatedNode};
#[cfg(test)]
pub(crate) use runtime::SimulatedRuntime;

/// How a simulated node behaves.
#[derive(Debug, Clone)]
pub struct SimulatedNodeConfig {
    /// Its name; also the value of `spec.nodeName` of its pods.
    pub name: String,
    /// How long things take on it.
    pub delays: Delays,
}

impl SimulatedNodeConfig {
    /// A node on which a container takes a second to start and another to be ready.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            delays: Delays::default(),
        }
    }
}

/// How long things take on a simulated node, in virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// From the decision to start a container until it runs.
    pub start: Duration,
    /// From then until it is ready; an init container ends successfully instead.
    pub ready: Duration,
    /// From the request to end until it ends, unless the grace period is over before.
    pub stop: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            start: second,
            ready: second,
            stop: second,
        }
    }
}

/// The node as an operator, and the handle to play tricks on it.
pub fn operator(config: SimulatedNodeConfig) -> (Operator, SimulatedNode) {
    let node = SimulatedNode::new(config.delays);
    let identity = Identity {
        name: config.name.clone(),
        host_ip: "10.0.0.1".to_owned(),
    };
    let (cpus, memory_kib) = (64, 256 * 1024 * 1024);
    let facts = Facts {
        name: config.name,
        host_ip: identity.host_ip.clone(),
        port: None,
        runtime: concat!("simulated://", env!("CARGO_PKG_VERSION")).to_owned(),
        cpus,
        memory_kib,
        pods: 1000,
        system: System::default(),
    };
    let agency = Agency {
        identity,
        capacity: Capacity { cpus, memory_kib },
        directory: Directory::default(),
        volumes: None,
        faults: node.faults(),
    };
    let (faults, mut grants) = (node.faults(), registration::grants());
    grants.push(Access::of::<Lease>([Verb::Delete]));
    let operator = Operator::new("windlass-node")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(agent::controller(agency, node.runtime()))
        .task("node", grants, move |task: TaskContext| {
            let (facts, faults) = (facts.clone(), faults.clone());
            async move { live(&task, &facts, &faults).await }
        });
    (operator, node)
}

/// Makes the node known. It renews nothing, or a settled cluster would never be: without a Lease it
/// is taken at its word. Only when it is to fall silent does it leave one, which nobody renews.
async fn live(task: &TaskContext, facts: &Facts, faults: &Faults) -> Result<()> {
    let busy = || task.environment.activity.busy("node: registration");
    let alive = async {
        {
            let _busy = busy();
            registration::register(&task.client, facts, &task.environment).await?;
        }
        loop {
            faults.silenced().await;
            {
                let _busy = busy();
                registration::renew(&task.client, &facts.name, &task.environment.clock).await?;
            }
            faults.answering().await;
            let _busy = busy();
            registration::withdraw(&task.client, &facts.name).await?;
            registration::register(&task.client, facts, &task.environment).await?;
        }
    };
    tokio::select! {
        biased;
        () = task.stopping.cancelled() => Ok(()),
        failed = alive => failed,
    }
}
