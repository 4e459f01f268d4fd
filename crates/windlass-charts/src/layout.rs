//! Times by a layout: the way a certain second of January 2006 would be written.

use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};

/// `time.RFC3339Nano`.
pub(crate) const RFC3339_NANO: &str = "2006-01-02T15:04:05.999999999Z07:00";
/// How Go prints a time.
pub(crate) const GO: &str = "2006-01-02 15:04:05.999999999 -0700 MST";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// One part of a layout that stands for a part of a time.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    LongMonth,
    ShortMonth,
    Month {
        width: usize,
    },
    LongWeekday,
    ShortWeekday,
    Day {
        width: usize,
        pad: char,
    },
    DayOfYear {
        pad: char,
    },
    Hour,
    Hour12 {
        width: usize,
    },
    Minute {
        width: usize,
    },
    Second {
        width: usize,
    },
    LongYear,
    ShortYear,
    Half {
        upper: bool,
    },
    Zone,
    Offset {
        z: bool,
        colon: bool,
        minutes: bool,
        seconds: bool,
    },
    Fraction {
        digits: usize,
        fixed: bool,
    },
}

/// The parts in the order in which they are looked for.
const PARTS: &[(&str, Part)] = &[
    ("January", Part::LongMonth),
    ("Jan", Part::ShortMonth),
    ("Monday", Part::LongWeekday),
    ("Mon", Part::ShortWeekday),
    ("MST", Part::Zone),
    ("002", Part::DayOfYear { pad: '0' }),
    ("01", Part::Month { width: 2 }),
    ("02", Part::Day { width: 2, pad: '0' }),
    ("03", Part::Hour12 { width: 2 }),
    ("04", Part::Minute { width: 2 }),
    ("05", Part::Second { width: 2 }),
    ("06", Part::ShortYear),
    ("15", Part::Hour),
    ("1", Part::Month { width: 1 }),
    ("2006", Part::LongYear),
    ("2", Part::Day { width: 1, pad: '0' }),
    ("__2", Part::DayOfYear { pad: ' ' }),
    ("_2", Part::Day { width: 2, pad: ' ' }),
    ("3", Part::Hour12 { width: 1 }),
    ("4", Part::Minute { width: 1 }),
    ("5", Part::Second { width: 1 }),
    ("PM", Part::Half { upper: true }),
    ("pm", Part::Half { upper: false }),
];

/// The offsets in the order in which they are looked for.
const OFFSETS: &[(&str, bool, bool, bool)] = &[
    ("070000", false, true, true),
    ("07:00:00", true, true, true),
    ("0700", false, true, false),
    ("07:00", true, true, false),
    ("07", false, false, false),
];

/// The part that a layout begins with, and how long it is.
fn part_at(layout: &str) -> Option<(Part, usize)> {
    if let Some(rest) = layout.strip_prefix(['-', 'Z']) {
        let z = layout.starts_with('Z');
        return OFFSETS.iter().find_map(|(text, colon, minutes, seconds)| {
            rest.starts_with(text).then_some((
                Part::Offset {
                    z,
                    colon: *colon,
                    minutes: *minutes,
                    seconds: *seconds,
                },
                text.len() + 1,
            ))
        });
    }
    if let Some(rest) = layout.strip_prefix(['.', ',']) {
        let digit = rest.chars().next().filter(|c| matches!(c, '0' | '9'))?;
        let after = rest.trim_start_matches(digit);
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let digits = rest.len() - after.len();
        let fixed = digit == '0';
        return Some((Part::Fraction { digits, fixed }, digits + 1));
    }
    if layout.starts_with("_2006") {
        return None;
    }
    let (text, part) = PARTS.iter().find(|(text, _)| layout.starts_with(text))?;
    let is_short_name = matches!(part, Part::ShortMonth | Part::ShortWeekday);
    let goes_on = layout[text.len()..].starts_with(|c: char| c.is_ascii_lowercase());
    (!(is_short_name && goes_on)).then_some((*part, text.len()))
}

/// What is literal at the front of a layout, the part behind it, and the rest.
fn split(layout: &str) -> (&str, Option<Part>, &str) {
    for (at, _) in layout.char_indices() {
        if let Some((part, length)) = part_at(&layout[at..]) {
            return (&layout[..at], Some(part), &layout[at + length..]);
        }
    }
    (layout, None, "")
}

/// A time by a layout.
pub(crate) fn format(layout: &str, time: &Zoned) -> String {
    let mut out = String::new();
    let mut rest = layout;
    loop {
        let (literal, part, after) = split(rest);
        out.push_str(literal);
        let Some(part) = part else {
            return out;
        };
        write(part, time, &mut out, rest[literal.len()..].starts_with(','));
        rest = after;
    }
}

fn write(part: Part, time: &Zoned, out: &mut String, comma: bool) {
    let month = MONTHS[usize::try_from(time.month() - 1).unwrap_or(0).min(11)];
    let weekday = DAYS[usize::try_from(time.weekday().to_sunday_zero_offset())
        .unwrap_or(0)
        .min(6)];
    let hour12 = match time.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let text = match part {
        Part::LongMonth => month.to_owned(),
        Part::ShortMonth => month[..3].to_owned(),
        Part::Month { width } => format!("{:0width$}", time.month()),
        Part::LongWeekday => weekday.to_owned(),
        Part::ShortWeekday => weekday[..3].to_owned(),
        Part::Day { width, pad: '0' } => format!("{:0width$}", time.day()),
        Part::Day { width, .. } => format!("{:width$}", time.day()),
        Part::DayOfYear { pad: '0' } => format!("{:03}", time.day_of_year()),
        Part::DayOfYear { .. } => format!("{:3}", time.day_of_year()),
        Part::Hour => format!("{:02}", time.hour()),
        Part::Hour12 { width } => format!("{hour12:0width$}"),
        Part::Minute { width } => format!("{:0width$}", time.minute()),
        Part::Second { width } => format!("{:0width$}", time.second()),
        Part::LongYear if time.year() < 0 => format!("-{:04}", -i32::from(time.year())),
        Part::LongYear => format!("{:04}", time.year()),
        Part::ShortYear => format!("{:02}", time.year().rem_euclid(100)),
        Part::Half { upper } => match (time.hour() >= 12, upper) {
            (true, true) => "PM",
            (true, false) => "pm",
            (false, true) => "AM",
            (false, false) => "am",
        }
        .to_owned(),
        Part::Zone => zone_name(time),
        Part::Offset {
            z,
            colon,
            minutes,
            seconds,
        } => offset_text(time.offset().seconds(), z, colon, minutes, seconds),
        Part::Fraction { digits, fixed } => {
            let nanos = format!("{:09}", time.subsec_nanosecond());
            let digits = &nanos[..digits.min(9)];
            let digits = if fixed {
                digits
            } else {
                digits.trim_end_matches('0')
            };
            match (digits.is_empty(), comma) {
                (true, _) => String::new(),
                (false, true) => format!(",{digits}"),
                (false, false) => format!(".{digits}"),
            }
        }
    };
    out.push_str(&text);
}

fn zone_name(time: &Zoned) -> String {
    let info = time.time_zone().to_offset_info(time.timestamp());
    let name = info.abbreviation().to_owned();
    if name.starts_with(['+', '-']) {
        let seconds = time.offset().seconds();
        let has_minutes = seconds % 3600 != 0;
        return offset_text(seconds, false, false, has_minutes, false);
    }
    name
}

fn offset_text(total: i32, z: bool, colon: bool, minutes: bool, seconds: bool) -> String {
    if z && total == 0 {
        return "Z".to_owned();
    }
    let sign = if total < 0 { '-' } else { '+' };
    let total = total.abs();
    let mut text = format!("{sign}{:02}", total / 3600);
    let between = if colon { ":" } else { "" };
    if minutes {
        text.push_str(&format!("{between}{:02}", total % 3600 / 60));
    }
    if seconds {
        text.push_str(&format!("{between}{:02}", total % 60));
    }
    text
}

/// The parts of a time that a text gave.
struct Fields {
    year: i16,
    month: i8,
    day: i8,
    day_of_year: Option<i16>,
    hour: i8,
    minute: i8,
    second: i8,
    nanos: i32,
    half: Option<bool>,
    offset: Option<i32>,
    zone: Option<String>,
}

/// Why a text could not be read.
enum Refused {
    Mismatch,
    Range(&'static str),
}

/// Reads a text by a layout; a time without a zone is one of the zone given.
pub(crate) fn parse(layout: &str, text: &str, zone: &TimeZone) -> Result<Zoned, String> {
    let mut fields = Fields {
        year: 0,
        month: 1,
        day: 1,
        day_of_year: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
        half: None,
        offset: None,
        zone: None,
    };
    let (mut rest, mut left) = (layout, text);
    loop {
        let (literal, part, after) = split(rest);
        let part_text = &rest[literal.len()..rest.len() - after.len()];
        let failed = |left: &str, expected: &str| {
            format!(
                "parsing time {} as {}: cannot parse {} as {}",
                quote(text),
                quote(layout),
                quote(left),
                quote(expected)
            )
        };
        left = skip_literal(left, literal).ok_or_else(|| failed(left, literal))?;
        let Some(part) = part else {
            if !left.is_empty() {
                return Err(format!(
                    "parsing time {}: extra text: {}",
                    quote(text),
                    quote(left)
                ));
            }
            break;
        };
        let before = left;
        match read(part, &mut left, &mut fields, after) {
            Ok(()) => {}
            Err(Refused::Mismatch) => return Err(failed(before, part_text)),
            Err(Refused::Range(what)) => {
                return Err(format!("parsing time {}: {what} out of range", quote(text)));
            }
        }
        rest = after;
    }
    build(&fields, zone).ok_or_else(|| format!("parsing time {}: day out of range", quote(text)))
}

fn quote(text: &str) -> String {
    crate::quote::quote(text.as_bytes())
}

/// Skips literal text, in which one space stands for any number of them.
fn skip_literal<'a>(mut text: &'a str, literal: &str) -> Option<&'a str> {
    let mut literal = literal;
    while let Some(c) = literal.chars().next() {
        if c == ' ' {
            if !text.is_empty() && !text.starts_with(' ') {
                return None;
            }
            literal = literal.trim_start_matches(' ');
            text = text.trim_start_matches(' ');
            continue;
        }
        text = text.strip_prefix(c)?;
        literal = &literal[c.len_utf8()..];
    }
    Some(text)
}

/// A number of one or two digits, or of exactly two.
fn number(text: &mut &str, exact: bool) -> Result<i8, Refused> {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let length = match (is_digit(0), is_digit(1)) {
        (true, true) => 2,
        (true, false) if !exact => 1,
        _ => return Err(Refused::Mismatch),
    };
    let value = text[..length].parse().map_err(|_| Refused::Mismatch)?;
    *text = &text[length..];
    Ok(value)
}

fn name(text: &mut &str, names: &[&str], short: bool) -> Result<usize, Refused> {
    for (index, name) in names.iter().enumerate() {
        let name = if short { &name[..3] } else { name };
        if let Some(head) = text.get(..name.len())
            && head.eq_ignore_ascii_case(name)
        {
            *text = &text[name.len()..];
            return Ok(index);
        }
    }
    Err(Refused::Mismatch)
}

fn in_range(value: i8, least: i8, most: i8, what: &'static str) -> Result<i8, Refused> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(Refused::Range(what))
    }
}

fn read(part: Part, text: &mut &str, fields: &mut Fields, after: &str) -> Result<(), Refused> {
    match part {
        Part::LongMonth | Part::ShortMonth => {
            let index = name(text, &MONTHS, part == Part::ShortMonth)?;
            fields.month = i8::try_from(index + 1).unwrap_or(1);
        }
        Part::Month { width } => {
            fields.month = in_range(number(text, width == 2)?, 1, 12, "month")?;
        }
        Part::LongWeekday | Part::ShortWeekday => {
            name(text, &DAYS, part == Part::ShortWeekday)?;
        }
        Part::Day { width, pad } => {
            if pad == ' ' {
                *text = text.strip_prefix(' ').unwrap_or(text);
            }
            fields.day = in_range(number(text, width == 2 && pad == '0')?, 0, 31, "day")?;
        }
        Part::DayOfYear { .. } => {
            let trimmed = text.trim_start_matches(' ');
            let digits = trimmed.get(..3).ok_or(Refused::Mismatch)?;
            fields.day_of_year = Some(digits.parse().map_err(|_| Refused::Mismatch)?);
            *text = &trimmed[3..];
        }
        Part::Hour => fields.hour = in_range(number(text, false)?, 0, 23, "hour")?,
        Part::Hour12 { width } => {
            fields.hour = in_range(number(text, width == 2)?, 0, 12, "hour")?;
        }
        Part::Minute { width } => {
            fields.minute = in_range(number(text, width == 2)?, 0, 59, "minute")?;
        }
        Part::Second { width } => {
            fields.second = in_range(number(text, width == 2)?, 0, 59, "second")?;
            // A fraction is read where the layout has none, too.
            let is_next = matches!(part_at(after), Some((Part::Fraction { .. }, _)));
            if !is_next {
                fraction(text, fields);
            }
        }
        Part::LongYear => {
            let digits = text
                .get(..4)
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
                .ok_or(Refused::Mismatch)?;
            fields.year = digits.parse().map_err(|_| Refused::Mismatch)?;
            *text = &text[4..];
        }
        Part::ShortYear => {
            let year = i16::from(number(text, true)?);
            fields.year = if year >= 69 { 1900 + year } else { 2000 + year };
        }
        Part::Half { upper } => {
            let (am, pm) = if upper { ("AM", "PM") } else { ("am", "pm") };
            let is_pm = text.starts_with(pm);
            if !is_pm && !text.starts_with(am) {
                return Err(Refused::Mismatch);
            }
            fields.half = Some(is_pm);
            *text = &text[2..];
        }
        Part::Zone => {
            let length = text
                .find(|c: char| !c.is_ascii_uppercase())
                .unwrap_or(text.len());
            if !(3..=5).contains(&length) {
                return Err(Refused::Mismatch);
            }
            fields.zone = Some(text[..length].to_owned());
            *text = &text[length..];
        }
        Part::Offset {
            z,
            colon,
            minutes,
            seconds,
        } => {
            if z && let Some(rest) = text.strip_prefix('Z') {
                *text = rest;
                fields.offset = Some(0);
                return Ok(());
            }
            fields.offset = Some(offset(text, colon, minutes, seconds)?);
        }
        Part::Fraction { .. } => fraction(text, fields),
    }
    Ok(())
}

fn fraction(text: &mut &str, fields: &mut Fields) {
    let Some(rest) = text.strip_prefix(['.', ',']) else {
        return;
    };
    let length = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    if length == 0 {
        return;
    }
    let digits: String = rest[..length]
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    fields.nanos = digits.parse().unwrap_or(0);
    *text = &rest[length..];
}

fn offset(text: &mut &str, colon: bool, minutes: bool, seconds: bool) -> Result<i32, Refused> {
    let negative = text.starts_with('-');
    *text = text.strip_prefix(['-', '+']).ok_or(Refused::Mismatch)?;
    let mut total = i32::from(in_range(
        number(text, true)?,
        0,
        24,
        "time zone offset hour",
    )?) * 3600;
    for (wanted, unit) in [(minutes, 60), (seconds, 1)] {
        if wanted {
            if colon {
                *text = text.strip_prefix(':').ok_or(Refused::Mismatch)?;
            }
            let value = in_range(number(text, true)?, 0, 60, "time zone offset minute")?;
            total += i32::from(value) * unit;
        }
    }
    Ok(if negative { -total } else { total })
}

fn build(fields: &Fields, zone: &TimeZone) -> Option<Zoned> {
    let hour = match fields.half {
        Some(true) if fields.hour < 12 => fields.hour + 12,
        Some(false) if fields.hour == 12 => 0,
        _ => fields.hour,
    };
    let date = match fields.day_of_year {
        Some(day) => Date::new(fields.year, 1, 1)
            .ok()?
            .with()
            .day_of_year(day)
            .build()
            .ok()?,
        None => Date::new(fields.year, fields.month, fields.day).ok()?,
    };
    let time = Time::new(hour, fields.minute, fields.second, fields.nanos).ok()?;
    let civil = date.to_datetime(time);
    let zone = match (fields.offset, fields.zone.as_deref()) {
        (Some(0), _) | (None, Some("UTC")) => TimeZone::UTC,
        (Some(seconds), _) => TimeZone::fixed(Offset::from_seconds(seconds).ok()?),
        (None, _) => zone.clone(),
    };
    civil.to_zoned(zone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_by_layout() {
        let time = parse(
            "2006-01-02T15:04:05Z07:00",
            "2024-03-05T16:07:08.5Z",
            &TimeZone::UTC,
        )
        .unwrap();
        for (layout, text) in [
            (
                "Mon Jan _2 15:04:05 MST 2006",
                "Tue Mar  5 16:07:08 UTC 2024",
            ),
            (
                "Monday, January 2, 06 3:4:5 PM",
                "Tuesday, March 5, 24 4:7:8 PM",
            ),
            ("2006-01-02T15:04:05.000Z07:00", "2024-03-05T16:07:08.500Z"),
            ("2006.002 -0700", "2024.065 +0000"),
            (RFC3339_NANO, "2024-03-05T16:07:08.5Z"),
            (GO, "2024-03-05 16:07:08.5 +0000 UTC"),
        ] {
            assert_eq!(format(layout, &time), text);
        }
        assert_eq!(
            parse("2006-01-02", "2024-x", &TimeZone::UTC).unwrap_err(),
            "parsing time \"2024-x\" as \"2006-01-02\": cannot parse \"x\" as \"01\""
        );
    }
}
