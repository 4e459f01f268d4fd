//! Addresses of Services.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::status::{ApiError, Cause, Result, field};
use crate::store::{Store, TableName};

/// The range `ClusterIPs` come from.
#[derive(Clone, Copy, Debug)]
pub struct ServiceRange {
    /// First address of the range.
    pub base: Ipv4Addr,
    /// Length of its prefix.
    pub prefix: u8,
}

impl Default for ServiceRange {
    /// 10.96.0.0/16, as kubeadm has it.
    fn default() -> Self {
        Self {
            base: Ipv4Addr::new(10, 96, 0, 0),
            prefix: 16,
        }
    }
}

impl ServiceRange {
    fn size(self) -> u32 {
        1_u32
            .checked_shl(32 - u32::from(self.prefix.min(32)))
            .unwrap_or(u32::MAX)
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address)
            .checked_sub(u32::from(self.base))
            .is_some_and(|offset| offset < self.size())
    }
}

/// The ports of nodes that Services may have.
const NODE_PORTS: std::ops::Range<u64> = 30_000..32_768;

/// Gives the ports of a Service that is reached through nodes a number there each. On an update
/// those that have one keep it.
pub(crate) fn allocate_node_ports(
    service: &mut Value,
    store: &Store,
    pick: impl Fn(u64) -> u64,
) -> Result<()> {
    let Some(spec) = service
        .get_mut("spec")
        .filter(|spec| spec["ports"].is_array())
    else {
        return Ok(());
    };
    let wanted = match spec["type"].as_str() {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    };
    let numbers = |ports: &Value| -> Vec<u64> {
        let ports = ports.as_array().into_iter().flatten();
        ports.filter_map(|port| port["nodePort"].as_u64()).collect()
    };
    let mut taken: std::collections::BTreeSet<u64> = numbers(&spec["ports"]).into_iter().collect();
    let ports = spec["ports"].as_array_mut().filter(|_| wanted);
    let mut unset = ports
        .into_iter()
        .flatten()
        .filter(|port| port["nodePort"].as_u64().unwrap_or_default() == 0)
        .peekable();
    if unset.peek().is_none() {
        return Ok(());
    }
    if let Ok(listing) = store.list(&TableName::new("", "services"), None, None, None) {
        for service in listing.objects {
            taken.extend(numbers(&service.value()["spec"]["ports"]));
        }
    }
    let size = NODE_PORTS.end - NODE_PORTS.start;
    for port in unset {
        let start = pick(size);
        let free = (0..size)
            .map(|step| NODE_PORTS.start + (start + step) % size)
            .find(|number| !taken.contains(number));
        let Some(number) = free else {
            return Err(ApiError::internal(
                "failed to allocate a nodePort: range is full",
            ));
        };
        taken.insert(number);
        port["nodePort"] = number.into();
    }
    Ok(())
}

/// Fills in the address fields of a new Service. `pick` draws a number below its argument.
pub(crate) fn allocate(
    service: &mut Value,
    store: &Store,
    range: ServiceRange,
    pick: impl Fn(u64) -> u64,
) -> Result<Vec<Cause>> {
    let Some(spec) = service["spec"].as_object_mut() else {
        return Ok(Vec::new());
    };
    if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
        return Ok(Vec::new());
    }
    let taken = |address: &str| {
        store.any(&TableName::new("", "services"), |service| {
            service
                .fields
                .iter()
                .any(|(field, value)| &**field == "spec.clusterIP" && &**value == address)
        })
    };
    let asked = spec
        .get("clusterIP")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let address = match asked.as_str() {
        "None" => asked,
        "" => {
            // The first addresses are left for those that are asked for by number.
            let (size, reserved) = (range.size(), (range.size() / 16).clamp(16, 256));
            let start = u32::try_from(pick(u64::from(size))).unwrap_or_default();
            let free = (0..size)
                .map(|step| start.wrapping_add(step) % size)
                .find(|offset| {
                    let address = Ipv4Addr::from(u32::from(range.base) + offset);
                    *offset >= reserved && *offset < size - 1 && !taken(&address.to_string())
                });
            match free {
                Some(offset) => Ipv4Addr::from(u32::from(range.base) + offset).to_string(),
                None => {
                    return Err(ApiError::internal(
                        "failed to allocate IP: the range of service addresses is full",
                    ));
                }
            }
        }
        _ => {
            let wrong = match asked.parse::<Ipv4Addr>() {
                Ok(address) if !range.contains(address) => Some(format!(
                    "failed to allocate IP {asked}: the provided IP ({asked}) is not in the valid range. The range of valid IPs is {}/{}",
                    range.base, range.prefix
                )),
                Ok(_) if taken(&asked) => Some(format!(
                    "failed to allocate IP {asked}: provided IP is already allocated"
                )),
                Ok(_) => None,
                Err(_) => {
                    Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned())
                }
            };
            if let Some(wrong) = wrong {
                return Ok(vec![field::invalid(
                    "spec.clusterIPs",
                    &json!([asked]),
                    &wrong,
                )]);
            }
            asked
        }
    };
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), address.into());
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    spec.entry("ipFamilyPolicy").or_insert("SingleStack".into());
    Ok(Vec::new())
}
