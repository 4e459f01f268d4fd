//! Schedules as cron writes them: five fields, or `@hourly` and its like, or `@every 1h30m`.

/// A field: its least and greatest value, and the names some values have, from the least on.
struct Bounds {
    least: u32,
    greatest: u32,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds {
        least: 0,
        greatest: 59,
        names: &[],
    },
    Bounds {
        least: 0,
        greatest: 23,
        names: &[],
    },
    Bounds {
        least: 1,
        greatest: 31,
        names: &[],
    },
    Bounds {
        least: 1,
        greatest: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Bounds {
        least: 0,
        greatest: 6,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];
const DESCRIPTORS: &[&str] = &[
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Why a text is no schedule, in the words of the library that Kubernetes reads it with.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScheduleError {
    #[error("provided bad location {0}: unknown time zone {0}")]
    TimeZone(String),
    #[error("expected exactly 5 fields, found {count}: [{fields}]")]
    Fields { count: usize, fields: String },
    #[error("failed to parse duration {0}: time: invalid duration \"{1}\"")]
    Duration(String, String),
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    #[error("too many slashes: {0}")]
    Slashes(String),
    #[error("beginning of range ({start}) below minimum ({least}): {range}")]
    TooSmall {
        start: u32,
        least: u32,
        range: String,
    },
    #[error("end of range ({end}) above maximum ({greatest}): {range}")]
    TooLarge {
        end: u32,
        greatest: u32,
        range: String,
    },
    #[error("beginning of range ({start}) beyond end of range ({end}): {range}")]
    Backwards { start: u32, end: u32, range: String },
    #[error("step of range should be a positive number: {0}")]
    NoStep(String),
    #[error("failed to parse int from {0}: strconv.Atoi: parsing \"{0}\": invalid syntax")]
    NoNumber(String),
    #[error("negative number ({0}) not allowed: {1}")]
    Negative(i64, String),
}

type Result<T> = std::result::Result<T, ScheduleError>;

/// Refuses a text that is no schedule.
pub(crate) fn parse(text: &str) -> Result<()> {
    let mut text = text;
    for prefix in ["TZ=", "CRON_TZ="] {
        let Some(rest) = text.strip_prefix(prefix) else {
            continue;
        };
        let Some((zone, rest)) = rest.split_once(' ') else {
            return Err(ScheduleError::TimeZone(rest.to_owned()));
        };
        if !is_time_zone(zone) {
            return Err(ScheduleError::TimeZone(zone.to_owned()));
        }
        text = rest.trim();
        break;
    }
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(ScheduleError::Fields {
            count: fields.len(),
            fields: fields.join(" "),
        });
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<()> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) if is_duration(duration) => Ok(()),
        Some(duration) => Err(ScheduleError::Duration(
            text.to_owned(),
            duration.to_owned(),
        )),
        None => Err(ScheduleError::Descriptor(text.to_owned())),
    }
}

/// `1h30m`, `1.5s`, as Go reads durations.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let dots = digits.matches('.').count();
        if digits.len() == dots || dots > 1 {
            return false;
        }
        let unit = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        if !matches!(
            &after[..unit],
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h"
        ) {
            return false;
        }
        rest = &after[unit..];
    }
    true
}

/// One value, a range, or everything, each with or without a step.
fn range(text: &str, bounds: &Bounds) -> Result<()> {
    let steps: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = steps[0].split('-').collect();
    let single = ends.len() == 1;
    let (start, mut end) = if matches!(ends[0], "*" | "?") {
        (bounds.least, bounds.greatest)
    } else {
        let start = value(ends[0], bounds)?;
        match ends.as_slice() {
            [_] => (start, start),
            [_, end] => (start, value(end, bounds)?),
            _ => return Err(ScheduleError::Hyphens(text.to_owned())),
        }
    };
    let step = match steps.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = integer(step)?;
            if single {
                end = bounds.greatest;
            }
            step
        }
        _ => return Err(ScheduleError::Slashes(text.to_owned())),
    };
    if start < bounds.least {
        return Err(ScheduleError::TooSmall {
            start,
            least: bounds.least,
            range: text.to_owned(),
        });
    }
    if end > bounds.greatest {
        return Err(ScheduleError::TooLarge {
            end,
            greatest: bounds.greatest,
            range: text.to_owned(),
        });
    }
    if start > end {
        return Err(ScheduleError::Backwards {
            start,
            end,
            range: text.to_owned(),
        });
    }
    if step == 0 {
        return Err(ScheduleError::NoStep(text.to_owned()));
    }
    Ok(())
}

fn value(text: &str, bounds: &Bounds) -> Result<u32> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(place) => Ok(bounds.least + u32::try_from(place).unwrap_or_default()),
        None => integer(text),
    }
}

fn integer(text: &str) -> Result<u32> {
    let number: i64 = text
        .parse()
        .map_err(|_| ScheduleError::NoNumber(text.to_owned()))?;
    u32::try_from(number).map_err(|_| ScheduleError::Negative(number, text.to_owned()))
}

/// Whether there is such a time zone, written exactly so.
pub(crate) fn is_time_zone(name: &str) -> bool {
    if matches!(name, "UTC" | "Local") {
        return true;
    }
    // The database is asked without regard to case; Go opens a file of that name.
    jiff::tz::TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn schedules_are_read_as_cron_reads_them() {
        for good in [
            "* * * * *",
            "0,30 1-5/2 ? JAN-MAR MON",
            "@hourly",
            "@every 1h30m",
            "*/5 0 1 1 0",
            "1/2 * * * *",
        ] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "* * * *",
            "60 * * * *",
            "* * * * 7",
            "@every",
            "@every 5",
            "-1 * * * *",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,30}") {
            let _ = parse(&text);
        }
    }
}
