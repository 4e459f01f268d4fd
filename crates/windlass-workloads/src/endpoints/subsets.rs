//! The subsets of an Endpoints object: addresses that have the same ports, together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

/// How many addresses an Endpoints object has at most.
const FULL: usize = 1000;

/// One address with one port, or with none at all.
pub(super) struct Entry {
    pub(super) address: EndpointAddress,
    pub(super) port: Option<EndpointPort>,
    pub(super) ready: bool,
}

type PortKey = (String, i32, String, String);
/// An address, and whose it is: two pods may share one.
type AddressKey = (String, String);

fn port_key(port: &EndpointPort) -> PortKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (name, protocol) = (text(&port.name), text(&port.protocol));
    (name, port.port, protocol, text(&port.app_protocol))
}

fn address_key(address: &EndpointAddress) -> AddressKey {
    let pod = address.target_ref.as_ref();
    let uid = pod.and_then(|pod| pod.uid.clone());
    (address.ip.clone(), uid.unwrap_or_default())
}

/// Packs entries into as few subsets as say the same, in one order.
pub(super) fn pack(entries: &[Entry]) -> Vec<EndpointSubset> {
    let mut addresses: BTreeMap<AddressKey, &EndpointAddress> = BTreeMap::new();
    let mut ports: BTreeMap<Option<PortKey>, Option<&EndpointPort>> = BTreeMap::new();
    let mut behind: BTreeMap<Option<PortKey>, BTreeMap<AddressKey, bool>> = BTreeMap::new();
    for entry in entries {
        let (port, address) = (
            entry.port.as_ref().map(port_key),
            address_key(&entry.address),
        );
        addresses.entry(address.clone()).or_insert(&entry.address);
        ports.insert(port.clone(), entry.port.as_ref());
        let ready = behind
            .entry(port)
            .or_default()
            .entry(address)
            .or_insert(true);
        *ready &= entry.ready;
    }
    let mut packed: BTreeMap<BTreeMap<AddressKey, bool>, Vec<EndpointPort>> = BTreeMap::new();
    for (port, group) in behind {
        let port = ports.get(&port).copied().flatten().cloned();
        packed.entry(group).or_default().extend(port);
    }
    let subsets = packed.into_iter().map(|(group, ports)| {
        let of = |ready: bool| {
            let some = group.iter().filter(|(_, is_ready)| **is_ready == ready);
            let some = some.filter_map(|(key, _)| addresses.get(key).copied().cloned());
            let some: Vec<EndpointAddress> = some.collect();
            (!some.is_empty()).then_some(some)
        };
        EndpointSubset {
            addresses: of(true),
            not_ready_addresses: of(false),
            ports: (!ports.is_empty()).then_some(ports),
        }
    });
    subsets.collect()
}

/// The entries that subsets say, so that two ways to say the same can be compared.
pub(super) fn unpack(subsets: &[EndpointSubset]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for subset in subsets {
        let ready = subset
            .addresses
            .iter()
            .flatten()
            .map(|address| (address, true));
        let unready = subset.not_ready_addresses.iter().flatten();
        let all = ready.chain(unready.map(|address| (address, false)));
        let ports = subset.ports.as_deref().unwrap_or_default();
        let ports: Vec<Option<EndpointPort>> = match ports {
            [] => vec![None],
            ports => ports.iter().cloned().map(Some).collect(),
        };
        for (address, ready) in all {
            let mut address = address.clone();
            if let Some(pod) = &mut address.target_ref {
                pod.resource_version = None;
            }
            entries.extend(ports.iter().map(|port| Entry {
                address: address.clone(),
                port: port.clone(),
                ready,
            }));
        }
    }
    entries
}

/// How many addresses there are.
pub(super) fn count(subsets: &[EndpointSubset]) -> usize {
    let of = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
    let counts = subsets.iter();
    counts
        .map(|subset| of(&subset.addresses) + of(&subset.not_ready_addresses))
        .sum()
}

/// Cuts what is too many, from each subset in proportion and the unready first; says whether
/// anything was.
pub(super) fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    if count(subsets) <= FULL {
        return false;
    }
    let ready: usize = subsets
        .iter()
        .map(|subset| subset.addresses.as_ref().map_or(0, Vec::len))
        .sum();
    let cuts_ready = ready > FULL;
    let (room, total) = if cuts_ready {
        (FULL, ready)
    } else {
        (FULL - ready, count(subsets) - ready)
    };
    let mut left = room;
    for subset in subsets {
        if cuts_ready {
            subset.not_ready_addresses = None;
        }
        let list = if cuts_ready {
            &mut subset.addresses
        } else {
            &mut subset.not_ready_addresses
        };
        let Some(addresses) = list else { continue };
        let share = (addresses.len() * room).div_ceil(total).min(left);
        addresses.truncate(share);
        left -= addresses.len();
        if addresses.is_empty() {
            *list = None;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(ip: &str, port: Option<i32>, ready: bool) -> Entry {
        Entry {
            address: EndpointAddress {
                ip: ip.to_owned(),
                ..EndpointAddress::default()
            },
            port: port.map(|port| EndpointPort {
                port,
                ..EndpointPort::default()
            }),
            ready,
        }
    }

    fn json(subsets: &[EndpointSubset]) -> serde_json::Value {
        serde_json::to_value(subsets).unwrap()
    }

    #[test]
    fn addresses_with_the_same_ports_stand_together() {
        let packed = pack(&[
            entry("10.0.0.2", Some(80), true),
            entry("10.0.0.2", Some(81), true),
            entry("10.0.0.1", Some(80), true),
            entry("10.0.0.1", Some(81), true),
            entry("10.0.0.3", Some(90), false),
        ]);
        assert_eq!(
            json(&packed),
            json!([
                {"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80}, {"port": 81}]},
                {"notReadyAddresses": [{"ip": "10.0.0.3"}], "ports": [{"port": 90}]},
            ])
        );
        assert_eq!(json(&pack(&unpack(&packed))), json(&packed));
    }

    #[test]
    fn an_address_without_ports_is_kept() {
        let packed = pack(&[entry("10.0.0.1", None, true)]);
        assert_eq!(json(&packed), json!([{"addresses": [{"ip": "10.0.0.1"}]}]));
        assert_eq!(json(&pack(&unpack(&packed))), json(&packed));
    }

    #[test]
    fn a_thousand_are_kept_the_ready_ones_first() {
        let many = |range: std::ops::Range<usize>, ready: bool| {
            range.map(move |n| entry(&format!("10.0.{}.{}", n / 200, n % 200), Some(80), ready))
        };
        let mut subsets = pack(
            &many(0..900, true)
                .chain(many(900..1100, false))
                .collect::<Vec<_>>(),
        );
        assert!(truncate(&mut subsets));
        assert_eq!(count(&subsets), 1000);
        assert_eq!(subsets[0].addresses.as_ref().unwrap().len(), 900);
        let mut subsets = pack(&many(0..1000, true).collect::<Vec<_>>());
        assert!(!truncate(&mut subsets));
    }
}
