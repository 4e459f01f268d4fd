//! Patterns of names, as Go's `filepath.Match` reads them.
//!
//! Only the last star that was met is ever tried again: what stands between two stars fits best
//! where it fits first. So a match takes at most as many steps as the pattern is long, times the
//! length of the name. This holds although a star stops at a slash, because a part of a pattern
//! with a slash in it fits in one place only.

/// A pattern, read.
pub(super) struct Pattern(Vec<Part>);

enum Part {
    /// Any characters but slashes.
    Star,
    /// One character, but no slash.
    Any,
    One(char),
    /// One character of these ranges, or of no range at all; but no slash.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Part {
    /// Whether it stands for this one character.
    fn is(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => c != '/',
            Self::One(wanted) => *wanted == c,
            Self::Class { negated, ranges } => {
                let is_in = ranges.iter().any(|(low, high)| *low <= c && c <= *high);
                c != '/' && is_in != *negated
            }
        }
    }
}

impl Pattern {
    /// Reads a pattern; nothing if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let chars: Vec<char> = text.chars().collect();
        let mut rest = chars.as_slice();
        let mut parts = Vec::new();
        while let Some((first, after)) = rest.split_first() {
            let (part, after) = match first {
                '*' => (Part::Star, after),
                '?' => (Part::Any, after),
                '[' => class(after)?,
                '\\' => {
                    let (escaped, after) = after.split_first()?;
                    (Part::One(*escaped), after)
                }
                other => (Part::One(*other), after),
            };
            parts.push(part);
            rest = after;
        }
        Some(Self(parts))
    }

    /// Whether a whole name matches.
    pub(super) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        // The part after the last star, and where in the name the star ends for now.
        let mut star = None;
        while let Some(c) = name.get(at) {
            match self.0.get(part) {
                Some(Part::Star) => {
                    part += 1;
                    star = Some((part, at));
                }
                Some(one) if one.is(*c) => {
                    part += 1;
                    at += 1;
                }
                _ => match star {
                    Some((after, end)) if name[end] != '/' => {
                        star = Some((after, end + 1));
                        (part, at) = (after, end + 1);
                    }
                    _ => return false,
                },
            }
        }
        self.0[part..].iter().all(|part| matches!(part, Part::Star))
    }
}

/// A class of characters whose bracket was read, and what follows it.
fn class(pattern: &[char]) -> Option<(Part, &[char])> {
    let (negated, mut rest) = match pattern.split_first() {
        Some(('^', rest)) => (true, rest),
        _ => (false, pattern),
    };
    let mut ranges = Vec::new();
    loop {
        if rest.first() == Some(&']') && !ranges.is_empty() {
            return Some((Part::Class { negated, ranges }, &rest[1..]));
        }
        let (low, after) = member(rest)?;
        let (high, after) = match after.split_first() {
            Some(('-', after)) => member(after)?,
            _ => (low, after),
        };
        ranges.push((low, high));
        rest = after;
    }
}

fn member(pattern: &[char]) -> Option<(char, &[char])> {
    let (first, rest) = pattern.split_first()?;
    let (c, rest) = match first {
        '-' | ']' => return None,
        '\\' => rest.split_first()?,
        _ => (first, rest),
    };
    (!rest.is_empty()).then_some((*c, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_go() {
        for (pattern, name, is_match) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a/b", false),
            ("a*b*c", "axbxbc", true),
            ("a*b*c", "axbxcd", false),
            ("*/b", "a/b", true),
            ("*/*b", "x/y/b", false),
            ("*a/*b", "aa/ab", true),
            ("?", "/", false),
            ("[^a]", "/", false),
            ("[^a]", "b", true),
            ("[a-c\\]]*", "]x", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
        ] {
            let found = Pattern::parse(pattern).unwrap().matches(name);
            assert_eq!(found, is_match, "{pattern} {name}");
        }
        for pattern in ["[", "[]", "[a", "[a-", "[-a]", "a\\", "*[", "x[z-]"] {
            assert!(Pattern::parse(pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        // With a step for each way to share the name among the stars, this would never end.
        let pattern = Pattern::parse(&format!("{}b", "a*".repeat(30))).unwrap();
        assert!(!pattern.matches(&"a".repeat(20_000)));
        assert!(pattern.matches(&format!("{}b", "a".repeat(20_000))));
    }
}
