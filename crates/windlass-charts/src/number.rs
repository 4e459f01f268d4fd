//! Numbers as Go reads and writes them.

/// An integer of a base, where base 0 means that a prefix says which; nothing if it is none or too
/// large.
pub(crate) fn parse_int(text: &str, base: u32) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let value = parse_uint(digits, base)?;
    if negative {
        0_i64.checked_sub_unsigned(value)
    } else {
        i64::try_from(value).ok()
    }
}

/// An integer without a sign.
pub(crate) fn parse_uint(text: &str, base: u32) -> Option<u64> {
    let (base, digits) = match base {
        0 => {
            let lower = text.to_ascii_lowercase();
            let prefixed = |prefix: &str| lower.starts_with(prefix) && text.len() > 2;
            let (base, digits) = if prefixed("0x") {
                (16, &text[2..])
            } else if prefixed("0o") {
                (8, &text[2..])
            } else if prefixed("0b") {
                (2, &text[2..])
            } else if text.len() > 1 && text.starts_with('0') {
                (8, &text[1..])
            } else {
                (10, text)
            };
            return parse_digits(&without_underscores(text, digits, base)?, base);
        }
        base => (base, text),
    };
    parse_digits(digits, base)
}

/// The digits without their underscores, which may only stand between digits or behind a prefix.
fn without_underscores(text: &str, digits: &str, base: u32) -> Option<String> {
    if !digits.contains('_') {
        return Some(digits.to_owned());
    }
    let is_prefixed = digits.len() < text.len();
    let is_misplaced = digits.ends_with('_')
        || digits.contains("__")
        || (digits.starts_with('_') && !is_prefixed)
        || (base == 10 && digits.starts_with('_'));
    (!is_misplaced).then(|| digits.replace('_', ""))
}

fn parse_digits(digits: &str, base: u32) -> Option<u64> {
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, base).ok()
}

/// A float, in decimal or hexadecimal; nothing if it is none or too large.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match lower.as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" => return (unsigned.len() == text.len()).then_some(f64::NAN),
        _ => {}
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        return Some(sign * parse_hex_float(hex)?);
    }
    let is_number = !lower.is_empty()
        && lower
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-'));
    if !is_number {
        return None;
    }
    let value: f64 = unsigned.parse().ok()?;
    value.is_finite().then_some(sign * value)
}

fn parse_hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    let mut scale = exponent;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    scale -= 4 * i32::try_from(fraction.len()).ok()?;
    let value = value * 2.0_f64.powi(scale);
    value.is_finite().then_some(value)
}

/// The shortest digits that mean a float, and where its point is: 0.d1d2d3 × 10^point.
struct Decimal {
    negative: bool,
    digits: String,
    point: i32,
}

fn decimal(scientific: &str) -> Decimal {
    let (negative, text) = match scientific.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, scientific),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    Decimal {
        negative,
        digits,
        point: exponent.parse::<i32>().unwrap_or(0) + 1,
    }
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("+Inf")
    } else if value == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}

/// `%v`: the shortest text that means the float, with an exponent from a million on.
pub(crate) fn format_g(value: f64) -> String {
    match special(value) {
        Some(text) => text.to_owned(),
        None => general(&decimal(&format!("{value:e}")), 6, 'e'),
    }
}

/// The same of a small float.
pub(crate) fn format_g32(value: f32) -> String {
    match special(f64::from(value)) {
        Some(text) => text.to_owned(),
        None => general(&decimal(&format!("{value:e}")), 6, 'e'),
    }
}

fn general(decimal: &Decimal, precision: i32, exponent: char) -> String {
    let digits = decimal.digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let sign = if decimal.negative { "-" } else { "" };
    let exp = decimal.point - 1;
    if exp < -4 || exp >= precision {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exp_sign = if exp < 0 { '-' } else { '+' };
        return format!(
            "{sign}{first}{point}{rest}{exponent}{exp_sign}{:02}",
            exp.abs()
        );
    }
    format!("{sign}{}", positional(digits, decimal.point))
}

/// Digits with their point, in full.
fn positional(digits: &str, point: i32) -> String {
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    if point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else if point >= length {
        format!("{digits}{}", zeros(point - length))
    } else {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{whole}.{fraction}")
    }
}

/// A float in JSON: in full, unless it is very small or very large.
pub(crate) fn format_json(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-6 || value.abs() >= 1e21) {
        let decimal = decimal(&format!("{value:e}"));
        let text = general(&decimal, -100, 'e');
        // An exponent of one digit has no zero in front.
        return match text.split_once("e-0") {
            Some((mantissa, exponent)) => format!("{mantissa}e-{exponent}"),
            None => text,
        };
    }
    format_f(value, None)
}

/// `%f` with a precision, or with as many digits as needed.
pub(crate) fn format_f(value: f64, precision: Option<usize>) -> String {
    match (special(value), precision) {
        (Some(text), _) => text.to_owned(),
        (None, Some(precision)) => format!("{value:.precision$}"),
        (None, None) => format!("{value}"),
    }
}

/// `%e` with a precision, or with as many digits as needed.
pub(crate) fn format_e(value: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let text = match precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// `%g` with a precision: that many digits, without zeros at the end.
pub(crate) fn format_g_precision(value: f64, precision: usize) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let precision = precision.max(1);
    let rounded = format!("{value:.*e}", precision - 1);
    let decimal = decimal(&rounded);
    let digits = i32::try_from(decimal.digits.trim_end_matches('0').len().max(1)).unwrap_or(1);
    let mut limit = i32::try_from(precision).unwrap_or(i32::MAX);
    if limit > digits && digits >= decimal.point {
        limit = digits;
    }
    general(&decimal, limit, 'e')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_go_writes_them() {
        for (value, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
            (0.0, "0"),
        ] {
            assert_eq!(format_g(value), text);
        }
        assert_eq!(format_json(1e6), "1000000");
        assert_eq!(format_json(1e21), "1e+21");
        assert_eq!(format_json(1e-7), "1e-7");
        assert_eq!(format_g_precision(2.34567, 3), "2.35");
        assert_eq!(format_g_precision(100_000.0, 3), "1e+05");
    }

    #[test]
    fn integers_have_prefixes() {
        assert_eq!(parse_int("0x1F", 0), Some(31));
        assert_eq!(parse_int("-017", 0), Some(-15));
        assert_eq!(parse_int("0o17", 0), Some(15));
        assert_eq!(parse_int("0b11", 0), Some(3));
        assert_eq!(parse_int("09", 0), None);
        assert_eq!(parse_int("1_0", 0), Some(10));
        assert_eq!(parse_int("1_0", 10), None);
        assert_eq!(parse_int("-9223372036854775808", 10), Some(i64::MIN));
    }
}
