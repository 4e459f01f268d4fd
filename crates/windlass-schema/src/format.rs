//! The formats of text that a schema can ask for, as kube-apiserver checks them.
//!
//! A format that is not known is ignored (and warned about when the definition is written).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

type Check = fn(&str) -> bool;

/// Every format of text, by its name without dashes.
const FORMATS: &[(&str, Check)] = &[
    ("bsonobjectid", |text| {
        text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }),
    ("uri", is_uri),
    ("email", is_email),
    ("hostname", is_hostname),
    ("ipv4", is_ipv4),
    ("ipv6", is_ipv6),
    ("cidr", is_cidr),
    ("mac", is_mac),
    ("uuid", |text| UUID.is_match(text)),
    ("uuid3", |text| UUID3.is_match(text)),
    ("uuid4", |text| UUID4.is_match(text)),
    ("uuid5", |text| UUID5.is_match(text)),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("creditcard", is_credit_card),
    ("ssn", |text| SSN.is_match(text) && text.len() == 11),
    ("hexcolor", |text| HEX_COLOR.is_match(text)),
    ("rgbcolor", |text| RGB_COLOR.is_match(text)),
    ("byte", |text| BASE64.is_match(text)),
    ("password", |_| true),
    ("date", is_date),
    ("duration", is_duration),
    ("datetime", is_date_time),
    ("k8sshortname", |text| {
        text.len() <= 63 && is_name_part(text)
    }),
    ("k8slongname", |text| {
        text.len() <= 253 && text.split('.').all(is_name_part)
    }),
];

/// Whether a format means something for values of a type.
pub(super) fn is_known(format: &str, ty: &str) -> bool {
    match ty {
        "" | "string" => find(format).is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether a text is of a format; every text is of one that is not known.
pub(super) fn fits(format: &str, text: &str) -> bool {
    find(format).is_none_or(|check| check(text))
}

fn find(format: &str) -> Option<Check> {
    let name = format.replace('-', "");
    FORMATS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, check)| *check)
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new($pattern).expect("the pattern is fixed and compiles")
        });)*
    };
}

patterns! {
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    SSN = r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
    BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    CREDIT_CARD = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}|6[27][0-9]{14})$";
    TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    DURATION_PART = r"([0-9]+)\s*([A-Za-zµ]+)";
    GO_DURATION = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
    HOST_CHAR = r"^[a-zA-Z0-9\p{S}\p{L}]$";
}

fn is_name_part(text: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(edge)
        && bytes.last().copied().is_some_and(edge)
        && bytes.iter().all(|byte| edge(*byte) || *byte == b'-')
}

/// An absolute path, or anything after a scheme.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control()) {
        return false;
    }
    let escapes_are_whole = text.match_indices('%').all(|(at, _)| {
        text.get(at + 1..at + 3)
            .is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    let has_scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        let authority = rest.strip_prefix("//").map(|rest| {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            &rest[..end]
        });
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && authority.is_none_or(|host| !host.contains([' ', '<', '>', '"', '^', '`']))
    });
    escapes_are_whole && (text.starts_with('/') || has_scheme)
}

/// An address, alone or in angle brackets behind a name.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        None => text,
        Some(rest) => match rest.rsplit_once('<') {
            None => return false,
            Some((_, address)) => address,
        },
    };
    let atom = |text: &str| {
        !text.is_empty()
            && text.split('.').all(|part| {
                !part.is_empty()
                    && part.chars().all(|c| {
                        c.is_ascii_alphanumeric()
                            || "!#$%&'*+-/=?^_`{|}~".contains(c)
                            || !c.is_ascii()
                    })
            })
    };
    address
        .rsplit_once('@')
        .is_some_and(|(user, domain)| atom(user) && atom(domain))
}

fn is_hostname(text: &str) -> bool {
    let mut buffer = [0; 4];
    let mut letter = |c: char| HOST_CHAR.is_match(c.encode_utf8(&mut buffer));
    if text.len() > 255 || text.split('.').any(|part| part.len() > 63) {
        return false;
    }
    let Some((labels, top)) = text.rsplit_once('.') else {
        // A single label: at most one dash, and that one second.
        let mut chars = text.chars();
        let first = chars.next().is_some_and(&mut letter);
        let rest = chars.as_str();
        let rest = rest.strip_prefix('-').unwrap_or(rest);
        return first && rest.chars().count() <= 62 && rest.chars().all(&mut letter);
    };
    let labels_fit = labels.split('.').all(|label| {
        let chars: Vec<char> = label.chars().collect();
        let (Some(first), Some(last)) = (chars.first(), chars.last()) else {
            return false;
        };
        letter(*first) && letter(*last) && chars.iter().all(|c| *c == '-' || letter(*c))
    });
    labels_fit && (2..=63).contains(&top.chars().count()) && top.chars().all(char::is_alphabetic)
}

/// Dotted, with leading zeroes tolerated; or an IPv6 address that ends in one.
fn is_ipv4(text: &str) -> bool {
    let dotted = text.split('.').collect::<Vec<_>>();
    let plain = dotted.len() == 4
        && dotted.iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part.parse::<u64>().is_ok_and(|number| number <= 255)
        });
    plain || (text.contains('.') && text.parse::<Ipv6Addr>().is_ok())
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, bits)| {
        let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let most = if address.parse::<Ipv4Addr>().is_ok()
            || (is_ipv4(address) && !address.contains(':'))
        {
            32
        } else if is_ipv6(address) {
            128
        } else {
            return false;
        };
        digits && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
    })
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let whole = parts
            .iter()
            .all(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
        whole && matches!(parts.len() * width / 2, 6 | 8 | 20)
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

fn without_dashes(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_dashes(text);
    let Some((body, check)) = digits.split_at_checked(9) else {
        return false;
    };
    if !body.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let last = match check {
        "X" => 10,
        digit => match digit.parse::<u32>() {
            Ok(digit) if check.len() == 1 => digit,
            _ => return false,
        },
    };
    let sum: u32 = (1..)
        .zip(body.bytes())
        .map(|(at, byte)| at * u32::from(byte - b'0'))
        .sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_dashes(text);
    if digits.len() != 13 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .enumerate()
        .map(|(at, byte)| u32::from(byte - b'0') * if at % 2 == 0 { 1 } else { 3 })
        .sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| match u32::from(byte - b'0') {
            digit if at % 2 == 0 => digit,
            digit if digit > 4 => 2 * digit - 9,
            digit => 2 * digit,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    // The year 0 is one for Go; it is a leap year.
    shape
        && (text.parse::<jiff::civil::Date>().is_ok()
            || text
                .strip_prefix("0000")
                .is_some_and(|rest| format!("2000{rest}").parse::<jiff::civil::Date>().is_ok()))
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    text.len() >= 4
        && is_date(date)
        && TIME
            .captures(time)
            .is_some_and(|found| &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59")
}

/// As Go writes durations, or in words: `2 days 3 hours`.
fn is_duration(text: &str) -> bool {
    const UNITS: &[&[&str]] = &[
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    if GO_DURATION.is_match(text) {
        return true;
    }
    let mut parts = DURATION_PART.captures_iter(text).peekable();
    let numbers_fit = DURATION_PART
        .captures_iter(text)
        .all(|part| part[1].parse::<i64>().is_ok());
    let is_unit = |unit: &str| {
        UNITS.iter().any(|names| {
            names.contains(&unit) || names.last().is_some_and(|last| unit.starts_with(last))
        })
    };
    parts.peek().is_some() && numbers_fit && parts.any(|part| is_unit(&part[2].to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formats_are_checked() {
        for (format, good, bad) in [
            ("hostname", "a.bc", "a.b"),
            ("hostname", "a-b", "a-b-c"),
            ("ipv4", "010.0.0.1", "256.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "0011.2233.4455", "0011.2233"),
            ("duration", "2 days", "2 fortnights"),
            ("date-time", "2020-02-29T12:00:00Z", "2020-02-30T12:00:00Z"),
            ("isbn10", "0321751043", "0321751044"),
            ("uri", "/a", "a"),
        ] {
            assert!(fits(format, good), "{format} {good}");
            assert!(!fits(format, bad), "{format} {bad}");
        }
        assert!(fits("unheard-of", "x"));
        assert!(!is_known("date-time", "integer") && is_known("int32", "integer"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            for (format, _) in FORMATS {
                let _ = fits(format, &text);
            }
        }
    }
}
