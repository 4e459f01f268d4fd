//! Durations as Go writes them: `1m30s`, `500ms`.

use std::time::Duration;

/// Reads a duration, which must not be negative.
pub fn parse(text: &str) -> Result<Duration, String> {
    let invalid = || format!("invalid duration {text:?}");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = rest
            .find(|c| !is_number(c))
            .ok_or_else(|| format!("missing unit in duration {text:?}"))?;
        let number: f64 = rest[..end].parse().map_err(|_| invalid())?;
        rest = &rest[end..];
        let end = rest.find(is_number).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            unit => return Err(format!("unknown unit {unit:?} in duration {text:?}")),
        };
        rest = &rest[end..];
        seconds += number * unit;
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_does() {
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1.5h"), Ok(Duration::from_mins(90)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        for wrong in ["", "5", "m", "-1s", "1x", "1s2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
