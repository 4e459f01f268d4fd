//! Times as Go reads and writes them: RFC 3339, to the second or to the microsecond.

use jiff::Timestamp;
use jiff::tz::Offset;

/// Why a text is no time, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text does not go on as its layout does.
    #[error("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")]
    Layout {
        /// The whole text.
        text: String,
        /// What it should look like.
        layout: &'static str,
        /// What is left of the text.
        rest: String,
        /// What of the layout it should begin with.
        part: &'static str,
    },
    /// The text goes on after the time.
    #[error("parsing time {text:?}: extra text: {rest:?}")]
    Extra {
        /// The whole text.
        text: String,
        /// What is left of it.
        rest: String,
    },
    /// A number that no time has.
    #[error("parsing time {text:?}: {what} out of range")]
    Range {
        /// The whole text.
        text: String,
        /// What the number is: a month, a day, and so on.
        what: &'static str,
    },
    /// A time beyond those that can be kept.
    #[error("parsing time {text:?}: {why}")]
    Instant {
        /// The whole text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
}

/// How precise a field's times are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `metav1.Time`; a fraction is read and forgotten.
    Seconds,
    /// `metav1.MicroTime`; six digits after the point, no more and no fewer.
    Micros,
}

/// The form in which a time is kept, or what Go says of a text that is none.
pub fn canonical(text: &str, precision: Precision) -> Result<String, TimeError> {
    let time = parse(text, precision)?;
    Ok(match precision {
        Precision::Seconds => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Precision::Micros => time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
    })
}

fn parse(text: &str, precision: Precision) -> Result<Timestamp, TimeError> {
    let mut reader = Reader {
        text,
        rest: text,
        layout: match precision {
            Precision::Seconds => "2006-01-02T15:04:05Z07:00",
            Precision::Micros => "2006-01-02T15:04:05.000000Z07:00",
        },
    };
    let year = reader.number(4, "2006")?;
    reader.literal("-")?;
    let month = reader.number(2, "01")?;
    reader.within(month, 1, 12, "month")?;
    reader.literal("-")?;
    let day = reader.number(2, "02")?;
    reader.literal("T")?;
    let hour = reader.number(2, "15")?;
    reader.within(hour, 0, 23, "hour")?;
    reader.literal(":")?;
    let minute = reader.number(2, "04")?;
    reader.within(minute, 0, 59, "minute")?;
    reader.literal(":")?;
    let second = reader.number(2, "05")?;
    reader.within(second, 0, 59, "second")?;
    let nanosecond = match precision {
        Precision::Seconds => reader.any_fraction(),
        Precision::Micros => reader.micros()?,
    };
    let offset = reader.offset()?;
    if !reader.rest.is_empty() {
        return Err(TimeError::Extra {
            text: text.to_owned(),
            rest: reader.rest.to_owned(),
        });
    }
    let small = |number: i32| i8::try_from(number).unwrap_or_default();
    let date = jiff::civil::Date::new(
        i16::try_from(year).unwrap_or_default(),
        small(month),
        small(day),
    )
    .map_err(|_| reader.out_of_range("day"))?;
    offset
        .to_timestamp(date.at(small(hour), small(minute), small(second), nanosecond))
        .map_err(|error| TimeError::Instant {
            text: text.to_owned(),
            why: error.to_string(),
        })
}

/// What is left of a text, and what it should have looked like.
struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl Reader<'_> {
    fn wrong(&self, part: &'static str) -> TimeError {
        TimeError::Layout {
            text: self.text.to_owned(),
            layout: self.layout,
            rest: self.rest.to_owned(),
            part,
        }
    }

    fn out_of_range(&self, what: &'static str) -> TimeError {
        TimeError::Range {
            text: self.text.to_owned(),
            what,
        }
    }

    fn number(&mut self, digits: usize, part: &'static str) -> Result<i32, TimeError> {
        let found = self.rest.get(..digits).filter(|text| all_digits(text));
        let number = found.and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| self.wrong(part))?;
        self.rest = &self.rest[digits..];
        Ok(number)
    }

    fn literal(&mut self, part: &'static str) -> Result<(), TimeError> {
        self.rest = self
            .rest
            .strip_prefix(part)
            .ok_or_else(|| self.wrong(part))?;
        Ok(())
    }

    fn within(
        &self,
        number: i32,
        least: i32,
        most: i32,
        what: &'static str,
    ) -> Result<(), TimeError> {
        if (least..=most).contains(&number) {
            Ok(())
        } else {
            Err(self.out_of_range(what))
        }
    }

    /// A fraction that the layout does not ask for.
    fn any_fraction(&mut self) -> i32 {
        let Some(after) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            self.rest = &after[digits..];
        }
        0
    }

    fn micros(&mut self) -> Result<i32, TimeError> {
        let digits = self
            .rest
            .get(..7)
            .and_then(|text| text.strip_prefix('.'))
            .filter(|text| all_digits(text))
            .and_then(|text| text.parse::<i32>().ok());
        let micros = digits.ok_or_else(|| self.wrong(".000000"))?;
        self.rest = &self.rest[7..];
        Ok(micros * 1000)
    }

    fn offset(&mut self) -> Result<Offset, TimeError> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(Offset::UTC);
        }
        let found = self.rest.get(..6).and_then(|text| {
            let sign = match text.as_bytes()[0] {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let (hours, minutes) = text[1..].split_once(':')?;
            let valid = all_digits(hours) && all_digits(minutes) && hours.len() == 2;
            let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
            valid.then_some(sign * seconds)
        });
        let seconds = found.ok_or_else(|| self.wrong("Z07:00"))?;
        self.rest = &self.rest[6..];
        Offset::from_seconds(seconds).map_err(|_| self.out_of_range("time zone offset hour"))
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_kept_in_utc_at_their_precision() {
        let seconds = |text| canonical(text, Precision::Seconds).unwrap();
        assert_eq!(seconds("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05Z");
        assert_eq!(seconds("2026-01-02T03:04:05.999Z"), "2026-01-02T03:04:05Z");
        assert_eq!(seconds("2026-01-02T03:04:05+01:00"), "2026-01-02T02:04:05Z");
        let micros = |text| canonical(text, Precision::Micros);
        assert_eq!(
            micros("2026-01-02T03:04:05.000100Z").unwrap(),
            "2026-01-02T03:04:05.000100Z"
        );
        assert_eq!(
            micros("2026-01-02T03:04:05Z").unwrap_err().to_string(),
            r#"parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
        );
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_kept_time_stays(text in "[0-9TZ:.+é-]{0,32}") {
            for precision in [Precision::Seconds, Precision::Micros] {
                if let Ok(kept) = canonical(&text, precision) {
                    prop_assert_eq!(canonical(&kept, precision), Ok(kept.clone()));
                }
            }
        }
    }
}
