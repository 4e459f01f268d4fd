//! Amounts of resources: `100m`, `1.5`, `64Mi`, `2e3`.

/// How many billionths one is.
const NANO: i128 = 1_000_000_000;

/// The value of a quantity in billionths, rounded up; none when it is not one.
fn nanos(text: &str) -> Option<i128> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+'))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (factor, divisor): (i128, i128) = match suffix {
        "" => (1, 1),
        "n" => (1, NANO),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (NANO, 1),
        "T" => (1_000 * NANO, 1),
        "P" => (1_000_000 * NANO, 1),
        "E" => (NANO * NANO, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        exponent => {
            let exponent: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { (1, power) } else { (power, 1) }
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let negative = whole.starts_with('-');
    let digits = whole.trim_start_matches(['-', '+']);
    if digits.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    for digit in digits.chars().chain(fraction.chars()) {
        value = value
            .checked_mul(10)?
            .checked_add(i128::from(digit.to_digit(10)?))?;
    }
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let value = value.checked_mul(factor)?.checked_mul(NANO)?;
    let value = ceil(value, scale.checked_mul(divisor)?);
    Some(if negative { -value } else { value })
}

/// The value in thousandths, rounded up.
pub(crate) fn millis(text: &str) -> Option<i128> {
    nanos(text).map(|nanos| ceil(nanos, NANO / 1_000))
}

/// The value in whole units, rounded up.
pub(crate) fn units(text: &str) -> Option<i128> {
    nanos(text).map(|nanos| ceil(nanos, NANO))
}

/// A division that rounds up.
pub(crate) fn ceil(value: i128, by: i128) -> i128 {
    let rest = i128::from(value % by > 0);
    value / by + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_as_kubernetes_writes_them() {
        assert_eq!(millis("100m"), Some(100));
        assert_eq!(millis("1.5"), Some(1_500));
        assert_eq!(millis("1n"), Some(1));
        assert_eq!(units("64Mi"), Some(64 << 20));
        assert_eq!(units("1.5Gi"), Some(3 << 29));
        assert_eq!(units("2e3"), Some(2_000));
        assert_eq!(units("100m"), Some(1));
        assert_eq!(units("-3k"), Some(-3_000));
        assert_eq!(units("lots"), None);
        assert_eq!(units(""), None);
        assert_eq!(units("1Zi"), None);
    }
}
