//! What a plain scalar means.

use crate::number;

/// What a scalar was found to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// A date or time, which is read as the string it is but written in quotes.
    Timestamp,
    /// `<<`, which merges mappings.
    Merge,
    Str,
}

/// Which spellings count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Version {
    /// `yes`, `no`, `on` and `off` are booleans.
    Old,
    /// They are not, and `0o17` is a number.
    New,
}

/// What a plain scalar means.
pub(crate) fn resolve(text: &str, version: Version) -> Scalar {
    let Some(first) = text.chars().next() else {
        return Scalar::Null;
    };
    match first {
        '+' | '-' | '0'..='9' => number_or_time(text, version),
        '.' => special(text, version)
            .unwrap_or_else(|| number::parse_float(text).map_or(Scalar::Str, Scalar::Float)),
        'y' | 'Y' | 'n' | 'N' | 't' | 'T' | 'f' | 'F' | 'o' | 'O' | '~' => {
            special(text, version).unwrap_or(Scalar::Str)
        }
        _ => Scalar::Str,
    }
}

fn special(text: &str, version: Version) -> Option<Scalar> {
    Some(match text {
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        "<<" => Scalar::Merge,
        old if version == Version::Old => Scalar::Bool(old_bool(old)?),
        _ => return None,
    })
}

/// The booleans of YAML 1.1 only.
pub(crate) fn old_bool(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn number_or_time(text: &str, version: Version) -> Scalar {
    if let Some(found) = special(text, version) {
        return found;
    }
    if is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let plain = text.replace('_', "");
    if let Some(int) = number::parse_int(&plain, 0) {
        return Scalar::Int(int);
    }
    if let Some(uint) = number::parse_uint(&plain, 0) {
        return Scalar::Uint(uint);
    }
    if is_yaml_float(&plain)
        && let Some(float) = number::parse_float(&plain)
    {
        return Scalar::Float(float);
    }
    if version == Version::New
        && let Some(octal) = plain.strip_prefix("0o")
        && let Some(int) = number::parse_int(octal, 8)
    {
        return Scalar::Int(int);
    }
    Scalar::Str
}

/// Whether a text is a number with digits on at least one side of its point.
fn is_yaml_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", after)) => digits(after),
        Some((before, after)) => digits(before) && (after.is_empty() || digits(after)),
        None => digits(mantissa),
    };
    let is_exponent = exponent
        .is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    is_mantissa && is_exponent
}

/// Whether a text is `2006-1-2`, `2006-1-2 15:4:5` or `2006-1-2T15:4:5Z`.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 5 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return false;
    }
    let layouts = [
        "2006-1-2T15:4:5.999999999Z07:00",
        "2006-1-2t15:4:5.999999999Z07:00",
        "2006-1-2 15:4:5.999999999",
        "2006-1-2",
    ];
    layouts
        .iter()
        .any(|layout| crate::layout::parse(layout, text, &jiff::tz::TimeZone::UTC).is_ok())
}

/// Whether a text is a number in base 60, which some readers would take it for.
pub(crate) fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let is_digit = |c: char| c.is_ascii_digit() || c == '_';
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !first.chars().all(is_digit) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else {
        return false;
    };
    let is_sixty = |part: &str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [tens, digit] => (b'0'..=b'5').contains(tens) && digit.is_ascii_digit(),
        _ => false,
    };
    let last = match last.split_once('.') {
        Some((whole, fraction)) => {
            if !fraction.chars().all(is_digit) {
                return false;
            }
            whole
        }
        None => last,
    };
    is_sixty(last) && middle.iter().all(|part| is_sixty(part))
}
