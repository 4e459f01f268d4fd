//! The ports of nodes by which Services are reached.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Refusal, has_health_check, has_node_ports, text};
use crate::object::meta;
use crate::server::ApiServer;
use crate::status::{ApiError, field};
use crate::store::TableName;

/// The ports that Services may have.
const NODE_PORTS: std::ops::Range<i64> = 30_000..32_768;
/// The first of them are left to those who ask for ports by number.
const ASKED_BY_NUMBER: i64 = 86;

/// What is given out, seen from one Service.
struct Ports<'a> {
    server: &'a ApiServer,
    taken: BTreeSet<i64>,
    /// What a dry run has chosen so far: numbers after the last that anybody may have.
    chosen_dry: Option<BTreeSet<i64>>,
}

impl Ports<'_> {
    fn take(&mut self, number: i64) -> Result<(), &'static str> {
        if let Some(chosen) = &mut self.chosen_dry {
            let free = !self.taken.contains(&number) && chosen.insert(number);
            return free
                .then_some(())
                .ok_or("provided port is already allocated");
        }
        if !NODE_PORTS.contains(&number) {
            return Err(
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            );
        }
        if !self.taken.insert(number) {
            return Err("provided port is already allocated");
        }
        Ok(())
    }

    fn take_any(&mut self) -> Option<i64> {
        if let Some(chosen) = &mut self.chosen_dry {
            let number = chosen.last().unwrap_or(&NODE_PORTS.end) + 1;
            chosen.insert(number);
            return Some(number);
        }
        let number = self
            .free(NODE_PORTS.start + ASKED_BY_NUMBER, NODE_PORTS.end)
            .or_else(|| self.free(NODE_PORTS.start, NODE_PORTS.start + ASKED_BY_NUMBER))?;
        self.taken.insert(number);
        Some(number)
    }

    fn free(&self, from: i64, to: i64) -> Option<i64> {
        let count = to - from;
        let start = self.server.random().between(0, count.unsigned_abs());
        let start = i64::try_from(start).unwrap_or_default();
        (0..count)
            .map(|step| from + (start + step) % count)
            .find(|number| !self.taken.contains(number))
    }
}

fn numbers(spec: &Value) -> impl Iterator<Item = i64> + '_ {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports
        .filter_map(|port| port["nodePort"].as_i64())
        .chain(spec["healthCheckNodePort"].as_i64())
        .filter(|number| *number != 0)
}

/// Gives the ports of a Service that is reached through nodes a number there each, and one to ask
/// for its health. On an update those that have one keep it. Tells the new ones.
pub(super) fn allocate(
    server: &ApiServer,
    promised: &BTreeSet<i64>,
    service: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<BTreeSet<i64>, Refusal> {
    let spec = &service["spec"];
    let wants_ports = has_node_ports(spec);
    let wants_check = has_health_check(spec) && !old.is_some_and(has_health_check);
    if !wants_ports && !wants_check {
        return Ok(BTreeSet::new());
    }
    let own = (meta(service, "namespace"), meta(service, "name"));
    let mut ports = Ports {
        server,
        taken: taken_by_others(server, own),
        chosen_dry: dry_run.then(BTreeSet::new),
    };
    ports.taken.extend(promised);
    let kept: BTreeSet<i64> = match old {
        Some(old) if has_node_ports(old) => numbers(old).collect(),
        _ => BTreeSet::new(),
    };
    let spec = &mut service["spec"];
    if wants_ports {
        match old {
            None => fill_new(spec, &mut ports)?,
            Some(_) => fill_changed(spec, &kept, &mut ports)?,
        }
    }
    if wants_check {
        fill_health_check(spec, &kept, &mut ports)?;
    }
    let before: BTreeSet<i64> = old.map(|old| numbers(old).collect()).unwrap_or_default();
    Ok(numbers(spec)
        .filter(|port| !before.contains(port))
        .collect())
}

fn taken_by_others(server: &ApiServer, own: (&str, &str)) -> BTreeSet<i64> {
    let listing = server
        .store()
        .list(&TableName::new("", "services"), None, None, None);
    let others = listing.map(|listing| listing.objects).unwrap_or_default();
    others
        .iter()
        .filter(|other| (other.key.namespace(), other.key.name()) != own)
        .flat_map(|other| numbers(&other.value()["spec"]).collect::<Vec<_>>())
        .collect()
}

fn allocates(spec: &Value) -> bool {
    text(spec, "type") == "NodePort" || spec["allocateLoadBalancerNodePorts"] != false
}

fn refuse(index: usize, number: i64, why: &str) -> Refusal {
    let path = format!("spec.ports[{index}].nodePort");
    Refusal::Causes(vec![field::invalid(path, &number.into(), why)])
}

fn full() -> Refusal {
    Refusal::Error(ApiError::internal(
        "failed to allocate a nodePort: range is full",
    ))
}

/// One number for each port of the Service, shared by its protocols.
fn fill_new(spec: &mut Value, ports: &mut Ports<'_>) -> Result<(), Refusal> {
    let all = allocates(spec);
    let asked: Vec<(i64, i64)> = spec["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|port| {
            let number = |field: &str| port[field].as_i64().unwrap_or_default();
            (number("port"), number("nodePort"))
        })
        .collect();
    let mut given = BTreeMap::new();
    for (index, &(port, wanted)) in asked.iter().enumerate() {
        if wanted == 0 && !all {
            continue;
        }
        let number = match given.get(&port) {
            Some(number) if wanted == 0 || wanted == *number => *number,
            Some(_) => {
                ports
                    .take(wanted)
                    .map_err(|why| refuse(index, wanted, why))?;
                wanted
            }
            None => {
                let same = |other: &&(i64, i64)| other.0 == port && other.1 != 0;
                let number = match asked.iter().find(same) {
                    Some((_, number)) => {
                        ports
                            .take(*number)
                            .map_err(|why| refuse(index, *number, why))?;
                        *number
                    }
                    None => ports.take_any().ok_or_else(full)?,
                };
                given.insert(port, number);
                number
            }
        };
        spec["ports"][index]["nodePort"] = number.into();
    }
    Ok(())
}

fn fill_changed(
    spec: &mut Value,
    kept: &BTreeSet<i64>,
    ports: &mut Ports<'_>,
) -> Result<(), Refusal> {
    let all = allocates(spec);
    let mut own: BTreeSet<i64> = kept.clone();
    let list = spec.get_mut("ports").and_then(Value::as_array_mut);
    for (index, port) in list.into_iter().flatten().enumerate() {
        match port["nodePort"].as_i64().unwrap_or_default() {
            0 if all => {
                // What the Service has already is not free either.
                ports.taken.extend(&own);
                let number = ports.take_any().ok_or_else(full)?;
                own.insert(number);
                port["nodePort"] = number.into();
            }
            0 => {}
            number if own.contains(&number) => {}
            number => {
                ports
                    .take(number)
                    .map_err(|why| refuse(index, number, why))?;
                own.insert(number);
            }
        }
    }
    Ok(())
}

fn fill_health_check(
    spec: &mut Value,
    kept: &BTreeSet<i64>,
    ports: &mut Ports<'_>,
) -> Result<(), Refusal> {
    ports.taken.extend(kept);
    let own: Vec<i64> = spec["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| port["nodePort"].as_i64())
        .collect();
    ports.taken.extend(own);
    match spec["healthCheckNodePort"].as_i64().unwrap_or_default() {
        0 => {
            let number = ports.take_any().ok_or_else(full)?;
            spec["healthCheckNodePort"] = number.into();
        }
        number => ports.take(number).map_err(|why| {
            let message =
                format!("failed to allocate requested HealthCheck NodePort {number}: {why}");
            Refusal::Error(ApiError::internal_because(&message))
        })?,
    }
    Ok(())
}
