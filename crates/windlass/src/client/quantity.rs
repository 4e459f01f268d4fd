//! Quantities in the form the API server writes them.
//!
//! A server that reads `0.5` or `1000m` answers `500m` or `1`. An intent that is written the
//! server's way from the start can be compared with what the server has.

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// How the server writes this quantity; none if it is not one, or too unusual to be sure.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = digits
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let mantissa: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    let sign = if negative && mantissa != 0 { "-" } else { "" };
    if mantissa == 0 {
        return Some("0".to_owned());
    }
    let written = if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        let scaled = mantissa.checked_mul(1_i128.checked_shl(*power)?)?;
        let unit = 10_i128.checked_pow(u32::try_from(places).ok()?)?;
        // What is not a whole number, or small, is written in decimals.
        if scaled % unit != 0 {
            return None;
        }
        let value = scaled / unit;
        if value < 1024 {
            decimal(value, 0)?
        } else {
            binary(value)
        }
    } else {
        let exponent = exponent_of(suffix)?;
        decimal(mantissa, exponent - places)?
    };
    Some(format!("{sign}{written}"))
}

/// The power of ten that a suffix means. Scientific notation stays as it is: it is kept by the
/// server in a form of its own.
fn exponent_of(suffix: &str) -> Option<i32> {
    let found = DECIMAL.iter().find(|(name, _)| *name == suffix);
    found.map(|(_, exponent)| *exponent)
}

fn decimal(mut mantissa: i128, mut exponent: i32) -> Option<String> {
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent.rem_euclid(3) != 0 || exponent > 18 {
        mantissa = mantissa.checked_mul(10)?;
        exponent -= 1;
    }
    // Finer than a billionth is rounded by the server.
    let (suffix, _) = DECIMAL.iter().find(|(_, power)| *power == exponent)?;
    Some(format!("{mantissa}{suffix}"))
}

fn binary(mut value: i128) -> String {
    let mut suffix = "";
    for (name, _) in BINARY {
        if value % 1024 != 0 {
            break;
        }
        value /= 1024;
        suffix = name;
    }
    format!("{value}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_as_the_server_writes_them() {
        for (given, written) in [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1.0", "1"),
            ("0", "0"),
            ("0Gi", "0"),
            ("100m", "100m"),
            ("128Mi", "128Mi"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1536Mi", "1536Mi"),
            ("512", "512"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1e3", "-"),
            ("0.5Ki", "512"),
            ("-2000m", "-2"),
            ("100M", "100M"),
            ("1000000k", "1G"),
            ("abc", "-"),
            ("1Xi", "-"),
        ] {
            assert_eq!(
                canonical(given).as_deref().unwrap_or("-"),
                written,
                "{given}"
            );
        }
    }
}
