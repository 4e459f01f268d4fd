//! Strings that match a regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::random::Random;

/// How many more than the least a repetition without a limit makes.
const MORE: u32 = 5;

/// A string that matches; none if the pattern is not one we can read.
pub(super) fn matching(pattern: &str, random: &mut Random) -> Option<String> {
    let parsed = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    write(&parsed, random, &mut text);
    Some(text)
}

fn write(part: &Hir, random: &mut Random, text: &mut String) {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(of_class(class, random)),
        HirKind::Repetition(repetition) => {
            let most = repetition
                .max
                .unwrap_or(repetition.min.saturating_add(MORE));
            let most = most.min(repetition.min.saturating_add(2 * MORE));
            let times = random.between(repetition.min.into(), most.max(repetition.min).into());
            for _ in 0..times {
                write(&repetition.sub, random, text);
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, random, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, random, text)),
        HirKind::Alternation(parts) => {
            let at = usize::try_from(random.below(parts.len() as u64)).unwrap_or(0);
            if let Some(part) = parts.get(at) {
                write(part, random, text);
            }
        }
    }
}

/// A character of a class, a printable one if it has any.
fn of_class(class: &Class, random: &mut Random) -> Option<char> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            let ranges = class.iter();
            ranges
                .map(|range| (range.start().into(), range.end().into()))
                .collect()
        }
        Class::Bytes(class) => {
            let ranges = class.iter();
            ranges
                .map(|range| (range.start().into(), range.end().into()))
                .collect()
        }
    };
    let printable: Vec<(u32, u32)> = ranges
        .iter()
        .map(|&(first, last)| (first.max(0x20), last.min(0x7e)))
        .filter(|(first, last)| first <= last)
        .collect();
    let ranges = if printable.is_empty() {
        ranges
    } else {
        printable
    };
    let at = usize::try_from(random.below(ranges.len() as u64)).unwrap_or(0);
    let &(first, last) = ranges.get(at)?;
    let chosen = random.between(first.into(), last.into());
    char::from_u32(u32::try_from(chosen).ok()?)
}
