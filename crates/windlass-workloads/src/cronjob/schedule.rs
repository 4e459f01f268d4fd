//! Schedules: when something happens next.
//!
//! Five fields (minute, hour, day of the month, month, day of the week), or a word like `@daily`,
//! or `@every 90s`. A day has to match both of its fields if one of them is a star, otherwise
//! either. Times are those of a time zone: one that its clocks skip is skipped, one that they show
//! twice happens twice.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// Nothing happens later than this many years from now.
const YEARS: i16 = 5;

/// A schedule.
#[derive(Clone, Debug)]
pub(crate) enum Schedule {
    /// Whenever the clocks of a time zone show a matching time.
    Clock(Box<Fields>, TimeZone),
    /// So long after the last time.
    Every(SignedDuration),
}

/// The values that match; a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
    /// Whether a day field is a star.
    any_day: bool,
}

struct Bounds(u32, u32, &'static [&'static str]);

const MINUTES: Bounds = Bounds(0, 59, &[]);
const HOURS: Bounds = Bounds(0, 23, &[]);
const DAYS: Bounds = Bounds(1, 31, &[]);
const MONTHS: Bounds = Bounds(
    1,
    12,
    &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
);
const WEEKDAYS: Bounds = Bounds(0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]);

impl Schedule {
    /// Reads a schedule, in a time zone.
    pub(crate) fn parse(text: &str, zone: TimeZone) -> Result<Self, String> {
        let text = text.trim();
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(every) = fields.strip_prefix("@every ") {
            let every =
                duration(every).ok_or_else(|| format!("failed to parse duration {text}"))?;
            // Whole seconds, one at least.
            return Ok(Self::Every(SignedDuration::from_secs(
                every.as_secs().max(1),
            )));
        }
        if fields.starts_with('@') {
            return Err(format!("unrecognized descriptor: {text}"));
        }
        let parts: Vec<&str> = fields.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts[..] else {
            let found = parts.len();
            return Err(format!(
                "expected exactly 5 fields, found {found}: [{}]",
                parts.join(" ")
            ));
        };
        let (day, any_day) = field(day, &DAYS)?;
        let (weekday, any_weekday) = field(weekday, &WEEKDAYS)?;
        let fields = Fields {
            minute: field(minute, &MINUTES)?.0,
            hour: field(hour, &HOURS)?.0,
            day,
            month: field(month, &MONTHS)?.0,
            weekday,
            any_day: any_day || any_weekday,
        };
        Ok(Self::Clock(Box::new(fields), zone))
    }

    /// The first time after this one; `None` when there is none for years.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(every) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*every).ok()
            }
            Self::Clock(fields, zone) => fields.next(after, zone),
        }
    }
}

impl Fields {
    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = after.as_second().div_euclid(60) + 1;
        let mut at = Timestamp::from_second(minute * 60)
            .ok()?
            .to_zoned(zone.clone());
        let last = at.year().checked_add(YEARS)?;
        while at.year() <= last {
            if !self.has_date(at.date()) {
                at = start_of_next_day(&at)?;
            } else if !has(self.hour, at.hour()) {
                let left = 60 - i64::from(at.minute());
                at = at.checked_add(SignedDuration::from_mins(left)).ok()?;
            } else if has(self.minute, at.minute()) {
                return Some(at.timestamp());
            } else {
                at = at.checked_add(SignedDuration::from_mins(1)).ok()?;
            }
        }
        None
    }

    fn has_date(&self, date: Date) -> bool {
        if !has(self.month, date.month()) {
            return false;
        }
        let day = has(self.day, date.day());
        let weekday = has(self.weekday, date.weekday().to_sunday_zero_offset());
        if self.any_day {
            day && weekday
        } else {
            day || weekday
        }
    }
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| bits >> value & 1 == 1)
}

fn start_of_next_day(at: &Zoned) -> Option<Zoned> {
    let tomorrow = at.date().tomorrow().ok()?;
    tomorrow.to_zoned(at.time_zone().clone()).ok()
}

/// The values of a field, and whether it is a star.
fn field(text: &str, bounds: &Bounds) -> Result<(u64, bool), String> {
    let (mut all, mut star) = (0, false);
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (these, is_star) = values(range, bounds)?;
        all |= these;
        star |= is_star;
    }
    Ok((all, star))
}

fn values(text: &str, bounds: &Bounds) -> Result<(u64, bool), String> {
    let Bounds(least, greatest, names) = bounds;
    let number = |text: &str| -> Result<u32, String> {
        let name = names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text));
        match name.and_then(|place| u32::try_from(place).ok()) {
            Some(place) => Ok(least + place),
            None => text
                .parse()
                .map_err(|_| format!("failed to parse int from {text}")),
        }
    };
    let mut parts = text.split('/');
    let range = parts.next().unwrap_or_default();
    let step = parts.next();
    if parts.next().is_some() {
        return Err(format!("too many slashes: {text}"));
    }
    let mut ends = range.split('-');
    let first = ends.next().unwrap_or_default();
    let (mut low, mut high, mut star) = (*least, *greatest, true);
    if first != "*" && first != "?" {
        star = false;
        low = number(first)?;
        high = match (ends.next(), step) {
            (Some(upper), _) => number(upper)?,
            (None, Some(_)) => *greatest,
            (None, None) => low,
        };
        if ends.next().is_some() {
            return Err(format!("too many hyphens: {text}"));
        }
    }
    let step = step.map_or(Ok(1), number)?;
    star &= step <= 1;
    if low < *least {
        return Err(format!(
            "beginning of range ({low}) below minimum ({least}): {text}"
        ));
    }
    if high > *greatest {
        return Err(format!(
            "end of range ({high}) above maximum ({greatest}): {text}"
        ));
    }
    if low > high {
        return Err(format!(
            "beginning of range ({low}) beyond end of range ({high}): {text}"
        ));
    }
    let step = usize::try_from(step).unwrap_or(0);
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    let bits = (low..=high)
        .step_by(step)
        .fold(0, |bits, value| bits | 1 << value);
    Ok((bits, star))
}

/// A time as Go writes it: `1h30m`, `90s`, `1.5h`.
fn duration(text: &str) -> Option<SignedDuration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..end].parse().ok()?;
        let unit_end = rest[end..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |at| end + at);
        let seconds = match &rest[end..unit_end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(amount * seconds).ok()?)?;
        rest = &rest[unit_end..];
    }
    SignedDuration::try_from(total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next_in(zone: &str, schedule: &str, after: &str) -> String {
        let zone = TimeZone::get(zone).unwrap();
        let next = Schedule::parse(schedule, zone)
            .unwrap()
            .next(after.parse().unwrap());
        next.map_or("never".to_owned(), |at| at.to_string())
    }

    fn next(schedule: &str, after: &str) -> String {
        next_in("UTC", schedule, after)
    }

    #[test]
    fn fields_are_matched() {
        let from = "2030-01-01T00:00:00Z"; // a Tuesday
        assert_eq!(next("* * * * *", from), "2030-01-01T00:01:00Z");
        assert_eq!(
            next("*/15 * * * *", "2030-01-01T00:16:01Z"),
            "2030-01-01T00:30:00Z"
        );
        assert_eq!(next("30 4 * * *", from), "2030-01-01T04:30:00Z");
        assert_eq!(next("0 0 29 2 *", from), "2032-02-29T00:00:00Z");
        assert_eq!(next("0 0 31 2 *", from), "never");
        assert_eq!(
            next("0 9-17/4 * * mon-fri", "2030-01-04T17:30:00Z"),
            "2030-01-07T09:00:00Z"
        );
        assert_eq!(next("5/20 * * * *", from), "2030-01-01T00:05:00Z");
        assert_eq!(next("@yearly", from), "2031-01-01T00:00:00Z");
        assert_eq!(next("@weekly", from), "2030-01-06T00:00:00Z");
        assert_eq!(next("@every 90s", from), "2030-01-01T00:01:30Z");
        assert_eq!(next("@every 1h30m", from), "2030-01-01T01:30:00Z");
    }

    #[test]
    fn either_day_field_matches_unless_one_is_a_star() {
        let from = "2030-01-01T00:00:00Z";
        assert_eq!(next("0 0 13 * fri", from), "2030-01-04T00:00:00Z");
        assert_eq!(next("0 0 13 * *", from), "2030-01-13T00:00:00Z");
        assert_eq!(next("0 0 * * fri", from), "2030-01-04T00:00:00Z");
    }

    #[test]
    fn clocks_that_change_skip_a_time_or_show_it_twice() {
        let berlin = "Europe/Berlin";
        assert_eq!(
            next_in(berlin, "0 8 * * *", "2030-01-01T00:00:00Z"),
            "2030-01-01T07:00:00Z"
        );
        assert_eq!(
            next_in(berlin, "0 8 * * *", "2030-07-01T00:00:00Z"),
            "2030-07-01T06:00:00Z"
        );
        // On 2030-03-31 there is no 02:30, on 2030-10-27 there are two.
        assert_eq!(
            next_in(berlin, "30 2 * * *", "2030-03-30T12:00:00Z"),
            "2030-04-01T00:30:00Z"
        );
        assert_eq!(
            next_in(berlin, "30 2 * * *", "2030-10-26T12:00:00Z"),
            "2030-10-27T00:30:00Z"
        );
        assert_eq!(
            next_in(berlin, "30 2 * * *", "2030-10-27T00:30:00Z"),
            "2030-10-27T01:30:00Z"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| Schedule::parse(text, TimeZone::UTC).unwrap_err();
        assert_eq!(
            error("* * * *"),
            "expected exactly 5 fields, found 4: [* * * *]"
        );
        assert_eq!(
            error("60 * * * *"),
            "end of range (60) above maximum (59): 60"
        );
        assert_eq!(
            error("5-3 * * * *"),
            "beginning of range (5) beyond end of range (3): 5-3"
        );
        assert_eq!(
            error("*/0 * * * *"),
            "step of range should be a positive number: */0"
        );
        assert_eq!(error("@sometimes"), "unrecognized descriptor: @sometimes");
        assert_eq!(error("x * * * *"), "failed to parse int from x");
    }

    proptest! {
        #[test]
        fn nothing_matches_between_now_and_next(minutes in 0..525_600i64, minute in 0..60u32, hour in 0..24u32) {
            let after = Timestamp::from_second(1_893_456_000 + minutes * 60 + 7).unwrap();
            let schedule = Schedule::parse(&format!("{minute} {hour} * * *"), TimeZone::UTC).unwrap();
            let next = schedule.next(after).unwrap();
            prop_assert!(next > after && next.as_second() - after.as_second() <= 24 * 3600);
            let shown = next.to_zoned(TimeZone::UTC);
            prop_assert_eq!((u32::try_from(shown.minute()), u32::try_from(shown.hour()), shown.second()), (Ok(minute), Ok(hour), 0));
        }
    }
}
