//! Ranges of addresses, and choosing one that nobody on the machine uses.

use std::fmt;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// A range of IPv4 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Its first address.
    pub base: Ipv4Addr,
    /// The length of its prefix.
    pub prefix: u8,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl Range {
    const fn sixteen(a: u8, b: u8) -> Self {
        Self {
            base: Ipv4Addr::new(a, b, 0, 0),
            prefix: 16,
        }
    }

    /// How many addresses it has.
    pub fn size(self) -> u32 {
        1_u32
            .checked_shl(32 - u32::from(self.prefix.min(32)))
            .unwrap_or(u32::MAX)
    }

    /// The address at a place of it.
    pub fn at(self, place: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base).saturating_add(place))
    }

    fn overlaps(self, other: Self) -> bool {
        let end = |range: Self| u64::from(u32::from(range.base)) + u64::from(range.size());
        u64::from(u32::from(self.base)) < end(other) && u64::from(u32::from(other.base)) < end(self)
    }
}

/// Two ranges, for pods and for Services, that overlap none of `taken`: those that people know from
/// elsewhere if they are free.
pub(super) fn choose(taken: &[Range]) -> Option<(Range, Range)> {
    let free = |range: &Range| taken.iter().all(|other| !range.overlaps(*other));
    let others = || {
        let ten = (128..=254).map(|second| Range::sixteen(10, second));
        ten.chain((16..=31).map(|second| Range::sixteen(172, second)))
    };
    let pods = std::iter::once(Range::sixteen(10, 244))
        .chain(others())
        .find(free)?;
    let services = std::iter::once(Range::sixteen(10, 96))
        .chain(others())
        .find(|range| free(range) && !range.overlaps(pods))?;
    Some((pods, services))
}

/// The ranges that the routes of the machine lead to, from the text of `/proc/net/route`; a route
/// to everywhere is none.
pub(super) fn routed(table: &str) -> Vec<Range> {
    let lines = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let number = |field: Option<&str>| u32::from_str_radix(field?, 16).ok();
        let target = number(fields.next())?;
        let mask = number(fields.nth(5))?;
        // The table shows addresses as numbers in the machine's own byte order.
        let base = Ipv4Addr::from(target.to_ne_bytes());
        let prefix = u8::try_from(mask.count_ones()).ok()?;
        (prefix > 0).then_some(Range { base, prefix })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_in_use_is_passed_over() {
        let known = Range::sixteen(10, 244);
        let (pods, services) = choose(&[]).expect("ranges");
        assert_eq!((pods, services), (known, Range::sixteen(10, 96)));
        let all_ten = Range {
            base: Ipv4Addr::new(10, 0, 0, 0),
            prefix: 8,
        };
        let (pods, services) = choose(&[all_ten]).expect("ranges");
        assert!(!pods.overlaps(all_ten) && !services.overlaps(all_ten) && !pods.overlaps(services));
    }

    #[test]
    fn the_table_of_routes() {
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n\
             eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\n\
             br0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n";
        if cfg!(target_endian = "little") {
            assert_eq!(routed(table), [Range::sixteen(10, 244)]);
        }
    }
}
