//! Amounts as Kubernetes writes them: `100m`, `1.5`, `2Gi`, `3e6`.
//!
//! Kept exactly, in billionths, with the notation it was written in: a sum is written in the
//! notation of its first part.

use std::fmt;
use std::ops::AddAssign;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

const ONE: i128 = 1_000_000_000;
const DECIMAL: [(&str, u32); 10] = [
    ("n", 0),
    ("u", 3),
    ("m", 6),
    ("", 9),
    ("k", 12),
    ("M", 15),
    ("G", 18),
    ("T", 21),
    ("P", 24),
    ("E", 27),
];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// An amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quantity {
    nanos: i128,
    is_binary: bool,
}

impl Quantity {
    /// So many.
    pub(crate) fn of(count: usize) -> Self {
        let count = i128::try_from(count).unwrap_or(i128::MAX / ONE);
        Self {
            nanos: count * ONE,
            is_binary: false,
        }
    }

    /// Reads an amount; `None` when it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'))
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let binary = BINARY.iter().skip(1).position(|one| *one == unit);
        let decimal = DECIMAL.iter().find(|(one, _)| *one == unit);
        let (mantissa, places) = decimal_number(number)?;
        let nanos = match (binary, decimal) {
            (Some(power), _) => {
                let unit = 1024_i128.checked_pow(u32::try_from(power + 1).ok()?)?;
                divided(mantissa.checked_mul(unit)?.checked_mul(ONE)?, places)
            }
            (None, Some((_, zeros))) => {
                divided(mantissa.checked_mul(10_i128.checked_pow(*zeros)?)?, places)
            }
            (None, None) => {
                let exponent: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
                let zeros = u32::try_from(9 + exponent).ok()?;
                divided(mantissa.checked_mul(10_i128.checked_pow(zeros)?)?, places)
            }
        };
        Some(Self {
            nanos,
            is_binary: binary.is_some(),
        })
    }

    /// The amount that an object has written; nought when it cannot be read.
    pub(crate) fn read(written: &Written) -> Self {
        Self::parse(&written.0).unwrap_or_default()
    }

    /// The amount as an object has it.
    pub(crate) fn written(self) -> Written {
        Written(self.to_string())
    }

    pub(crate) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// The amount in billionths.
    pub(crate) fn nanos(self) -> i128 {
        self.nanos
    }

    /// The greater of two.
    pub(crate) fn max(self, other: Self) -> Self {
        if other.nanos > self.nanos {
            other
        } else {
            self
        }
    }
}

/// A decimal number without its point, and how many places stood behind it.
fn decimal_number(text: &str) -> Option<(i128, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    Some((digits.parse().ok()?, u32::try_from(fraction.len()).ok()?))
}

/// Divides by a power of ten, away from nought: less than asked for is never enough.
fn divided(value: i128, places: u32) -> i128 {
    let by = 10_i128.checked_pow(places).unwrap_or(i128::MAX);
    let rest = i128::from(value % by != 0) * value.signum();
    value / by + rest
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        if self.nanos == 0 {
            self.is_binary = other.is_binary;
        }
        self.nanos = self.nanos.saturating_add(other.nanos);
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_binary && self.nanos.abs() >= 1024 * ONE {
            let mut amount = divided(self.nanos, 9);
            let mut unit = 0;
            while amount % 1024 == 0 && unit + 1 < BINARY.len() {
                amount /= 1024;
                unit += 1;
            }
            return write!(f, "{amount}{}", BINARY[unit]);
        }
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let fits = |zeros: &u32| self.nanos % 10_i128.pow(*zeros) == 0;
        let (unit, zeros) = DECIMAL
            .iter()
            .rev()
            .find(|(_, zeros)| fits(zeros))
            .copied()
            .unwrap_or(("n", 0));
        write!(f, "{}{unit}", self.nanos / 10_i128.pow(zeros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).map_or("none".to_owned(), |quantity| quantity.to_string())
    }

    #[test]
    fn reads_and_writes_as_kubernetes_does() {
        for (text, written) in [
            ("100m", "100m"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500", "1500"),
            ("2000", "2k"),
            ("1Gi", "1Gi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("1e3", "1k"),
            ("0", "0"),
            ("x", "none"),
            ("", "none"),
        ] {
            assert_eq!(canonical(text), written, "{text}");
        }
    }

    #[test]
    fn a_sum_is_written_as_its_first_part() {
        let mut sum = Quantity::default();
        sum += Quantity::parse("512Mi").unwrap();
        sum += Quantity::parse("1Gi").unwrap();
        assert_eq!(sum.to_string(), "1536Mi");
        let mut sum = Quantity::of(0);
        sum += Quantity::parse("250m").unwrap();
        sum += Quantity::parse("1").unwrap();
        assert_eq!(sum.to_string(), "1250m");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(number in 0..10_000_000i64, unit in prop::sample::select(vec!["", "m", "k", "M", "Ki", "Mi", "Gi"])) {
            let quantity = Quantity::parse(&format!("{number}{unit}")).unwrap();
            prop_assert_eq!(Quantity::parse(&quantity.to_string()).unwrap().nanos(), quantity.nanos());
        }
    }
}
