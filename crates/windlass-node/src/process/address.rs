//! Addresses of pods: one each, from 127.64.0.0/10.
//!
//! Every address of 127.0.0.0/8 is the machine's own, so a process can bind any of them without
//! privileges. Where a pod's search begins follows from its name and the node's folder, so that
//! the same pods get the same addresses again; an address is passed over when another pod has it
//! or when a socket of another program is bound to it.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::path::Path;

const FIRST: u32 = u32::from_be_bytes([127, 64, 0, 0]);
const COUNT: u32 = 1 << 22;

/// The first free address for a pod; none when all four million are taken.
pub(crate) fn allocate(
    node: &Path,
    namespace: &str,
    name: &str,
    taken: &BTreeSet<Ipv4Addr>,
) -> Option<Ipv4Addr> {
    let mut hasher = DefaultHasher::new();
    (node, namespace, name).hash(&mut hasher);
    let start = u32::try_from(hasher.finish() % u64::from(COUNT)).unwrap_or_default();
    (0..COUNT)
        .map(|step| Ipv4Addr::from(FIRST + (start + step) % COUNT))
        // People take these for networks and broadcasts.
        .filter(|address| !matches!(address.octets()[3], 0 | 255))
        .find(|address| !taken.contains(address))
}

/// The addresses of the range to which some socket of the machine is bound.
pub(crate) fn bound() -> BTreeSet<Ipv4Addr> {
    ["tcp", "udp"]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/net/{table}")).ok())
        .flat_map(|table| table.lines().filter_map(local_address).collect::<Vec<_>>())
        .filter(|address| (FIRST..FIRST + COUNT).contains(&u32::from(*address)))
        .collect()
}

/// The local address of a line such as `0: 0100407F:2BCB 00000000:0000 0A …`.
fn local_address(line: &str) -> Option<Ipv4Addr> {
    let (address, _port) = line.split_whitespace().nth(1)?.split_once(':')?;
    // The table shows the address as a number in the machine's own byte order.
    let number = u32::from_str_radix(address, 16).ok()?;
    Some(Ipv4Addr::from(number.to_ne_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bound_address_is_seen() {
        let socket = std::net::UdpSocket::bind("127.64.9.77:0").expect("a socket");
        assert!(bound().contains(&Ipv4Addr::new(127, 64, 9, 77)));
        drop(socket);
    }

    #[test]
    fn the_table_of_sockets() {
        let line = "   0: 0109407F:2BCB 00000000:0000 0A 00000000:00000000";
        if cfg!(target_endian = "little") {
            assert_eq!(local_address(line), Some(Ipv4Addr::new(127, 64, 9, 1)));
        }
        assert_eq!(local_address("  sl  local_address rem_address"), None);
    }

    proptest! {
        #[test]
        fn addresses_are_of_the_range_distinct_and_repeatable(
            names in prop::collection::btree_set("[a-z]{1,6}", 1..40),
        ) {
            let node = Path::new("/state");
            let mut taken = BTreeSet::new();
            for name in &names {
                let address = allocate(node, "default", name, &taken).expect("an address");
                prop_assert!(address.octets()[0] == 127 && address.octets()[1] & 0xC0 == 64);
                prop_assert_eq!(allocate(node, "default", name, &taken), Some(address));
                prop_assert!(taken.insert(address));
            }
        }
    }
}
