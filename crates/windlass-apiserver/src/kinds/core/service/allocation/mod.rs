//! Addresses and ports of Services: who gets which, and that nobody gets what another has.
//!
//! A Service's address comes from one range ([`range`]), and every address given out is an
//! `IPAddress` object named after it ([`address`]): whoever creates that object has the address.
//! Node ports have no object; they are what the Services say ([`port`]). What is chosen is promised
//! to the write that chose it ([`Allocations`]) until that is done, which may take a while, as
//! webhooks are asked about it: nobody else chooses it meanwhile, and a choice that is not written
//! was never made.
//!
//! Kubernetes allocates before it drops what no longer fits a changed type ([`change`]) and before
//! it validates, and so does this: the causes of a request that is wrong in both ways are those of
//! the allocation.

mod address;
mod change;
mod family;
mod port;
mod range;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::server::ApiServer;
use crate::status::{ApiError, Cause, Result};

pub(crate) use change::drop_dependent;
pub use range::ServiceRange;

/// What is promised to writes that are under way. Locked while something is chosen.
#[derive(Debug, Default)]
pub(crate) struct Allocations(Mutex<Promised>);

#[derive(Debug, Default)]
struct Promised {
    addresses: BTreeSet<String>,
    ports: BTreeSet<i64>,
}

impl Allocations {
    fn lock(&self) -> MutexGuard<'_, Promised> {
        // Sets are changed in one step each: a panic under the lock leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The addresses and ports a write takes, and the address it gives back.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    taken: Option<String>,
    released: Option<String>,
    ports: BTreeSet<i64>,
}

/// Why a Service gets nothing.
pub(crate) enum Refusal {
    /// The Service asks for what it cannot have.
    Causes(Vec<Cause>),
    /// There is nothing left, or the answer is not a cause in Kubernetes either.
    Error(ApiError),
}

impl From<Vec<Cause>> for Refusal {
    fn from(causes: Vec<Cause>) -> Self {
        Self::Causes(causes)
    }
}

/// Fills in the addresses and ports of a Service, new or changed. What the plan says is promised
/// until it is finished. A dry run is promised nothing, and shown what nobody could have.
pub(crate) fn allocate(
    server: &ApiServer,
    service: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Plan, Refusal> {
    if !service["spec"].is_object() {
        return Ok(Plan::default());
    }
    match old {
        None => change::normalise_new(&mut service["spec"]),
        Some(old) => {
            change::keep_allocated(&mut service["spec"], &old["spec"]);
            change::normalise(&mut service["spec"], &old["spec"]);
        }
    }
    let before = old.map(|old| &old["spec"]);
    let causes = family::fill(&mut service["spec"], before);
    if !causes.is_empty() {
        return Err(causes.into());
    }
    let mut promised = server.allocations().lock();
    let spec = &mut service["spec"];
    let mut plan = address::plan(server, &promised.addresses, spec, before, dry_run)?;
    plan.ports = port::allocate(server, &promised.ports, service, before, dry_run)?;
    if dry_run {
        return Ok(Plan::default());
    }
    promised.addresses.extend(plan.taken.clone());
    promised.ports.extend(&plan.ports);
    Ok(plan)
}

/// Makes the addresses of a plan the Service's own, before it is written.
pub(crate) fn take(server: &ApiServer, service: &Value, plan: &Plan) -> Result<(), Refusal> {
    match &plan.taken {
        Some(address) => address::take(server, service, address),
        None => Ok(()),
    }
}

/// Gives a Service an address without asking whether it is free: in a new server every one is.
pub(crate) fn claim(server: &ApiServer, service: &Value, address: &str) {
    let _ = address::take(server, service, address);
}

/// Ends a plan: what was taken for a write that failed and what a write gave up are free again.
pub(crate) fn finish(server: &ApiServer, plan: &Plan, taken: bool, written: bool) {
    let freed = match (written, taken) {
        (true, _) => &plan.released,
        (false, true) => &plan.taken,
        (false, false) => &None,
    };
    if let Some(address) = freed {
        address::free(server, address);
    }
    let mut promised = server.allocations().lock();
    if let Some(address) = &plan.taken {
        promised.addresses.remove(address);
    }
    for port in &plan.ports {
        promised.ports.remove(port);
    }
}

/// Frees the address of a Service that is gone.
pub(crate) fn release(server: &ApiServer, service: &Value) {
    let spec = &service["spec"];
    if has_address(spec)
        && let Some(address) = spec["clusterIP"].as_str().filter(|one| *one != "None")
    {
        address::free(server, address);
    }
}

fn text<'a>(spec: &'a Value, field: &str) -> &'a str {
    spec[field].as_str().unwrap_or_default()
}

pub(crate) fn has_address(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

pub(crate) fn has_node_ports(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

pub(crate) fn is_headless(spec: &Value) -> bool {
    text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None"
}

/// Whether traffic from outside the cluster reaches it.
pub(crate) fn is_external(spec: &Value) -> bool {
    has_node_ports(spec)
        || (text(spec, "type") == "ClusterIP"
            && spec["externalIPs"]
                .as_array()
                .is_some_and(|ips| !ips.is_empty()))
}

/// Whether a load balancer asks each node about it.
pub(crate) fn has_health_check(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}
