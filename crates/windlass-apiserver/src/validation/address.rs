//! IP addresses and ranges of them, as strictly as Kubernetes reads them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::at::At;
use crate::status::Cause;

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An address as old software read it: zeros before a number do not count.
pub(crate) fn lenient(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let mut numbers = [0_u8; 4];
    let mut parts = text.split('.');
    for number in &mut numbers {
        let part = parts.next()?;
        let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let digits = part.trim_start_matches('0');
        *number = match (plain, digits) {
            (false, _) => return None,
            (true, "") => 0,
            (true, digits) => digits.parse().ok()?,
        };
    }
    parts
        .next()
        .is_none()
        .then(|| IpAddr::V4(Ipv4Addr::from(numbers)))
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some())
}

/// What is wrong with a text as an address.
pub(crate) fn ip_errors(text: &str) -> Vec<String> {
    let why = match (lenient(text), text.parse::<IpAddr>()) {
        (None, _) => NO_ADDRESS,
        (Some(_), Err(_)) => "must not have leading 0s",
        (Some(_), Ok(address)) if is_mapped(address) => "must not be an IPv4-mapped IPv6 address",
        (Some(_), Ok(_)) => return Vec::new(),
    };
    vec![why.to_owned()]
}

/// The same where an address must be written in its shortest form.
pub(crate) fn canonical_ip_errors(text: &str) -> Vec<String> {
    let errors = ip_errors(text);
    match text.parse::<IpAddr>() {
        Ok(address) if errors.is_empty() && address.to_string() != text => {
            vec![format!(
                "must be in canonical form ({:?})",
                address.to_string()
            )]
        }
        _ => errors,
    }
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) base: IpAddr,
    pub(crate) prefix: u8,
}

impl Cidr {
    fn read(text: &str) -> Option<Self> {
        let (base, prefix) = text.split_once('/')?;
        let base = lenient(base)?;
        let plain = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: u8 = prefix.parse().ok().filter(|_| plain)?;
        (prefix <= if base.is_ipv4() { 32 } else { 128 }).then_some(Self { base, prefix })
    }

    /// The first address of the range, as a number of 128 bits with those of IPv4 on top.
    fn bits(address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(four) => u128::from(u32::from(four)) << 96,
            IpAddr::V6(six) => u128::from(six),
        }
    }

    fn mask(self) -> u128 {
        u128::MAX
            .checked_shl(128 - u32::from(self.prefix))
            .unwrap_or_default()
    }

    fn is_exact(self) -> bool {
        Self::bits(self.base) & !self.mask() == 0
    }

    /// Whether every address of another range is in this one, and some of this one's are not in it.
    pub(crate) fn strictly_contains(self, other: Self) -> bool {
        self.base.is_ipv4() == other.base.is_ipv4()
            && self.prefix < other.prefix
            && Self::bits(other.base) & self.mask() == Self::bits(self.base) & self.mask()
    }
}

/// What is wrong with a text as a range.
pub(crate) fn cidr_errors(text: &str) -> Vec<String> {
    let Some(range) = Cidr::read(text) else {
        return vec![NO_RANGE.to_owned()];
    };
    let (base, prefix) = text.split_once('/').unwrap_or_default();
    let zeros = base.parse::<IpAddr>().is_err() || (prefix.len() > 1 && prefix.starts_with('0'));
    let why = if zeros {
        "must not have leading 0s in IP or prefix length"
    } else if is_mapped(range.base) {
        "must not have an IPv4-mapped IPv6 address"
    } else if !range.is_exact() {
        "must not have bits set beyond the prefix length"
    } else {
        return Vec::new();
    };
    vec![why.to_owned()]
}

/// The range a text stands for, if it is one.
pub(crate) fn cidr(text: &str) -> Option<Cidr> {
    Cidr::read(text)
}

/// Addresses that traffic cannot be sent to from elsewhere.
pub(crate) fn check_endpoint_ip(at: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let Some(address) = lenient(at.as_text()) else {
        causes.push(at.invalid_text("must be a valid IP address"));
        return;
    };
    let link_local = match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    let link_local_multicast = match address {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => is_link_local_multicast(six),
    };
    for (found, why) in [
        (
            address.is_unspecified(),
            format!("may not be unspecified ({address})"),
        ),
        (
            address.is_loopback() && !is_of_a_local_pod(address),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        ),
        (
            link_local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned(),
        ),
        (
            link_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ] {
        if found {
            causes.push(at.invalid_text(&why));
        }
    }
}

/// Whether an address is of the range that pods have which run as plain processes of this machine
/// (127.64.0.0/10). Kubernetes refuses these like all of loopback; here they are where pods are.
fn is_of_a_local_pod(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(four) if four.octets()[0] == 127 && four.octets()[1] >> 6 == 1)
}

fn is_link_local_multicast(address: Ipv6Addr) -> bool {
    address.is_multicast() && address.segments()[0] & 0x000f == 2
}

/// Whether a text is an address at all.
pub(crate) fn is_ip(text: &str) -> bool {
    lenient(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_strictly_and_say_why_not() {
        assert!(ip_errors("10.0.0.1").is_empty());
        assert_eq!(ip_errors("10.0.0.01"), ["must not have leading 0s"]);
        assert_eq!(ip_errors("10.0.0"), [NO_ADDRESS]);
        assert_eq!(ip_errors("10.0.0.256"), [NO_ADDRESS]);
        assert_eq!(
            canonical_ip_errors("2001:DB8::0"),
            ["must be in canonical form (\"2001:db8::\")"]
        );
    }

    #[test]
    fn ranges_say_what_is_wrong_with_them() {
        assert!(cidr_errors("10.0.0.0/8").is_empty());
        assert!(cidr_errors("::/0").is_empty());
        assert!(cidr_errors("10.0.0.1/32").is_empty());
        assert!(cidr_errors("10.0.0.1/8")[0].contains("bits set"));
        assert!(cidr_errors("10.0.0.0/08")[0].contains("leading 0s"));
        assert_eq!(cidr_errors("10.0.0.0/33"), [NO_RANGE]);
        let range = |text| cidr(text).unwrap();
        assert!(range("10.0.0.0/8").strictly_contains(range("10.1.0.0/16")));
        assert!(!range("10.0.0.0/8").strictly_contains(range("10.0.0.0/8")));
        assert!(!range("10.0.0.0/8").strictly_contains(range("11.0.0.0/16")));
    }
}
