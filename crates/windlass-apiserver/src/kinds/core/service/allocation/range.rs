//! The range that addresses of Services come from.

use std::net::Ipv4Addr;

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

impl std::fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

/// A text is not a range of addresses.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a range of IPv4 addresses such as 10.0.0.0/24")]
pub struct ServiceRangeError(String);

impl std::str::FromStr for ServiceRange {
    type Err = ServiceRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let range = text.split_once('/').and_then(|(base, prefix)| {
            let (base, prefix) = (base.parse().ok()?, prefix.parse().ok()?);
            (prefix <= 30).then_some(Self { base, prefix })
        });
        range.ok_or_else(|| ServiceRangeError(text.to_owned()))
    }
}

impl ServiceRange {
    fn size(self) -> u32 {
        1_u32
            .checked_shl(32 - u32::from(self.prefix.min(32)))
            .unwrap_or(u32::MAX)
    }

    fn at(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base).saturating_add(offset))
    }

    /// Whether an address can be given out: it is in the range, and neither its first, which names
    /// the network, nor its last, which everybody listens to.
    pub(super) fn has(self, address: Ipv4Addr) -> bool {
        u32::from(address)
            .checked_sub(u32::from(self.base))
            .is_some_and(|offset| offset > 0 && offset < self.size().saturating_sub(1))
    }

    /// The address of the `kubernetes` Service.
    pub(crate) fn first(self) -> Ipv4Addr {
        self.at(1)
    }

    /// A free address, sought from a random place on. The first part of the range is left to those
    /// who ask for addresses by number, and used only when the rest is full.
    pub(super) fn pick(
        self,
        pick: impl Fn(u64) -> u64,
        is_taken: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        let size = self.size();
        let reserved = (size / 16).clamp(16, 256).min(size);
        let free = |from: u32, to: u32| {
            let count = to.checked_sub(from).filter(|count| *count > 0)?;
            let start = u32::try_from(pick(u64::from(count))).unwrap_or_default();
            (0..count)
                .map(|step| self.at(from + start.wrapping_add(step) % count))
                .find(|address| self.has(*address) && !is_taken(*address))
        };
        free(reserved, size).or_else(|| free(0, reserved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_free_address_is_found_and_then_none() {
        let range = ServiceRange {
            base: Ipv4Addr::new(10, 0, 0, 0),
            prefix: 28,
        };
        let left = Ipv4Addr::new(10, 0, 0, 9);
        assert_eq!(range.pick(|_| 3, |address| address != left), Some(left));
        assert_eq!(range.pick(|_| 3, |_| true), None);
        assert!(!range.has(range.base) && !range.has(Ipv4Addr::new(10, 0, 0, 15)));
    }

    #[test]
    fn low_addresses_are_left_to_those_who_ask() {
        let range = ServiceRange::default();
        let picked = range.pick(|_| 0, |_| false).unwrap();
        assert_eq!(picked, Ipv4Addr::new(10, 96, 1, 0));
    }
}
