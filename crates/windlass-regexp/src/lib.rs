//! Regular expressions as Go reads them: patterns of schemas and charts are written for its reader.
//!
//! They mean nearly the same here. What differs is written down in the other dialect before it is
//! compiled: within brackets `[`, `&&` and `~~` are plain characters, a brace that counts nothing is
//! one, digits, spaces and letters of `\d`, `\s`, `\w` and `\b` are those of ASCII, there are octal
//! escapes, and `\Q…\E` is text as it stands.

pub use regex::{Regex, bytes};
use regex_syntax::hir::ErrorKind as HirErrorKind;

/// The most often that Go lets something be repeated.
const MOST_REPEATED: u32 = 1000;
/// How far to look for the end of a count or of the name of a class: no such thing is longer.
const SHORT: usize = 24;

/// Why Go would not compile a pattern, in its words.
#[derive(Debug, thiserror::Error)]
#[error("error parsing regexp: {0}")]
pub struct PatternError(String);

/// Compiles a pattern that Go would compile.
pub fn compile(pattern: &str) -> Result<Regex, PatternError> {
    compile_with(pattern, Regex::new)
}

/// Compiles a pattern that Go would compile, for text that need not be UTF-8.
pub fn compile_bytes(pattern: &str) -> Result<bytes::Regex, PatternError> {
    compile_with(pattern, bytes::Regex::new)
}

fn compile_with<T>(
    pattern: &str,
    compile: impl Fn(&str) -> Result<T, regex::Error>,
) -> Result<T, PatternError> {
    let translated = translate(pattern)?;
    compile(&translated).map_err(|error| PatternError(reason(pattern, &translated, &error)))
}

/// Whether a pattern names a class of characters that does not exist.
fn names_no_property(translated: &str) -> bool {
    match regex_syntax::parse(translated) {
        Err(regex_syntax::Error::Translate(error)) => {
            matches!(error.kind(), HirErrorKind::UnicodePropertyNotFound)
        }
        _ => false,
    }
}

fn reason(pattern: &str, translated: &str, error: &regex::Error) -> String {
    let count = |c: char| pattern.matches(c).count();
    if count('(') > count(')') {
        format!("missing closing ): `{pattern}`")
    } else if count(')') > count('(') {
        format!("unexpected ): `{pattern}`")
    } else if count('[') > count(']') {
        let from = pattern.find('[').unwrap_or_default();
        format!("missing closing ]: `{}`", &pattern[from..])
    } else {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default();
        let why = why.trim_start_matches("error: ");
        match pattern.find(r"\p").or(pattern.find(r"\P")) {
            Some(at) if names_no_property(translated) => {
                let shown = property(&pattern[at..]);
                format!("invalid character class range: `{shown}`")
            }
            _ => why.to_owned(),
        }
    }
}

/// The property that text begins with: `\pL` or `\p{Greek}`.
fn property(text: &str) -> &str {
    let length = match text.split_once('}') {
        Some((name, _)) if name.starts_with(r"\p{") || name.starts_with(r"\P{") => name.len() + 1,
        _ => text.chars().take(3).map(char::len_utf8).sum(),
    };
    &text[..length]
}

/// What is left of a pattern.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.0 = &self.0[next.len_utf8()..];
        Some(next)
    }

    /// Whether this comes next, which then is read.
    fn skip(&mut self, text: &str) -> bool {
        let after = self.0.strip_prefix(text);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }

    /// What comes next up to the end of `end`, if that is near, which then is read.
    fn up_to(&mut self, end: &str) -> Option<&'a str> {
        let near = self.0.floor_char_boundary(SHORT);
        let length = self.0[..near].find(end)? + end.len();
        let (found, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(found)
    }
}

/// The pattern in the dialect of the crate `regex`, or why it is none.
fn translate(pattern: &str) -> Result<String, PatternError> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = Rest(pattern);
    // Where the operator began that repeats what is in front, if one was just read.
    let mut repeats_from: Option<usize> = None;
    // Whether there is nothing in front yet that could be repeated.
    let mut is_start = true;
    loop {
        let at = pattern.len() - rest.0.len();
        let Some(next) = rest.next() else {
            return Ok(out);
        };
        let counted = if next == '{' {
            counted(&mut rest)?
        } else {
            None
        };
        if matches!(next, '*' | '+' | '?') || counted.is_some() {
            out.push(next);
            out.push_str(counted.unwrap_or_default());
            // One that is lazy belongs to its operator.
            if rest.skip("?") {
                out.push('?');
            }
            if is_start {
                let shown = &pattern[at..pattern.len() - rest.0.len()];
                return Err(PatternError(format!(
                    "missing argument to repetition operator: `{shown}`"
                )));
            }
            if let Some(from) = repeats_from {
                let shown = &pattern[from..pattern.len() - rest.0.len()];
                return Err(PatternError(format!(
                    "invalid nested repetition operator: `{shown}`"
                )));
            }
            repeats_from = Some(at);
            continue;
        }
        repeats_from = None;
        is_start = matches!(next, '(' | '|');
        match next {
            '[' => class(&mut rest, &mut out)?,
            '(' if rest.skip("?") => {
                let flag = rest.peek().unwrap_or_default();
                if !":P<imsU-".contains(flag) {
                    return Err(PatternError(format!(
                        "invalid or unsupported Perl syntax: `(?{flag}`"
                    )));
                }
                // What names or sets something comes up to where the group begins.
                out.push_str("(?");
                while let Some(next) = rest.next() {
                    out.push(next);
                    if matches!(next, ':' | '>' | ')') {
                        break;
                    }
                }
            }
            '{' => out.push_str(r"\{"),
            '\\' if rest.skip("Q") => {
                let (text, after) = rest.0.split_once(r"\E").unwrap_or((rest.0, ""));
                out.push_str(&regex::escape(text));
                rest = Rest(after);
            }
            '\\' => out.push_str(&escape(&mut rest)?),
            other => out.push(other),
        }
    }
}

/// The count behind a brace with the brace that closes it, or nothing if it is a plain brace.
fn counted<'a>(rest: &mut Rest<'a>) -> Result<Option<&'a str>, PatternError> {
    let mut ahead = Rest(rest.0);
    let Some(count) = ahead.up_to("}") else {
        return Ok(None);
    };
    let inner = count.trim_end_matches('}');
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if least.is_empty() || !is_number(least) || !is_number(most) {
        return Ok(None);
    }
    let too_often = |text: &str| {
        let number = text.parse().unwrap_or(u32::MAX);
        !text.is_empty() && number > MOST_REPEATED
    };
    let is_reversed = !most.is_empty() && least.parse::<u32>().ok() > most.parse().ok();
    if too_often(least) || too_often(most) || is_reversed {
        return Err(PatternError(format!("invalid repeat count: `{{{count}`")));
    }
    *rest = ahead;
    Ok(Some(count))
}

/// What stands behind a backslash.
fn escape(rest: &mut Rest<'_>) -> Result<String, PatternError> {
    let Some(next) = rest.next() else {
        return Err(PatternError(
            "trailing backslash at end of expression: ``".to_owned(),
        ));
    };
    Ok(match next {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        's' => r"[\t\n\x0c\r ]".to_owned(),
        'S' => r"[^\t\n\x0c\r ]".to_owned(),
        'w' => "[0-9A-Za-z_]".to_owned(),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        'b' => r"(?-u:\b)".to_owned(),
        'B' => r"(?-u:\B)".to_owned(),
        '0'..='7' if next == '0' || rest.peek().is_some_and(|c| c.is_digit(8)) => {
            let mut value = next.to_digit(8).unwrap_or_default();
            for _ in 0..2 {
                let Some(digit) = rest.peek().and_then(|c| c.to_digit(8)) else {
                    break;
                };
                value = value * 8 + digit;
                rest.next();
            }
            format!(r"\x{{{value:x}}}")
        }
        other if other.is_ascii_alphanumeric() && !"AzPpxafnrtv".contains(other) => {
            return Err(PatternError(format!(
                "invalid escape sequence: `\\{other}`"
            )));
        }
        other => format!("\\{other}"),
    })
}

/// What stands between brackets, the first of which was read.
fn class(rest: &mut Rest<'_>, out: &mut String) -> Result<(), PatternError> {
    out.push('[');
    if rest.skip("^") {
        out.push('^');
    }
    let mut is_first = true;
    while let Some(next) = rest.next() {
        if next == ']' && !is_first {
            out.push(']');
            return Ok(());
        }
        is_first = false;
        member(next, rest, out)?;
        // A dash that something follows makes a range, whatever that is.
        let makes_range =
            rest.0.starts_with('-') && !matches!(rest.0, "-") && !rest.0.starts_with("-]");
        if makes_range && rest.skip("-") {
            out.push('-');
            if let Some(end) = rest.next() {
                if next != '\\' && end != '\\' && end < next {
                    return Err(PatternError(format!(
                        "invalid character class range: `{next}-{end}`"
                    )));
                }
                member(end, rest, out)?;
            }
        }
    }
    Ok(())
}

/// The classes that have a name.
const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// One character or class within brackets.
fn member(first: char, rest: &mut Rest<'_>, out: &mut String) -> Result<(), PatternError> {
    match first {
        '\\' => out.push_str(&escape(rest)?),
        '[' if rest.peek() == Some(':') => match rest.up_to(":]") {
            Some(name) if NAMED.contains(&name.trim_matches([':', '^', ']'])) => {
                out.push('[');
                out.push_str(name);
            }
            Some(name) => {
                return Err(PatternError(format!(
                    "invalid character class range: `[{name}`"
                )));
            }
            None => out.push_str(r"\["),
        },
        '[' | ']' | '&' | '~' | '-' => {
            out.push('\\');
            out.push(first);
        }
        other => out.push(other),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_takes_for_plain_characters_is_plain() {
        for (pattern, text) in [
            (r#"^[^()<>@,;:\\"\/[\]?={} \t\x7f\x00]+$"#, "token"),
            ("^[a&&b]+$", "&a"),
            ("^[a~~b]+$", "~b"),
            ("^[+--]$", ","),
            ("^[]a]$", "]"),
            ("^[[:alpha:]_]+$", "a_"),
            ("^a{b}$", "a{b}"),
            ("^a{,2}$", "a{,2}"),
            (r"^\Qa.b\E$", "a.b"),
            (r"^\101\0$", "A\0"),
            (r"\bword\b", "a word"),
            (r"^a{2}?$", "aa"),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            assert!(compiled.is_match(text), "{pattern} and {text}");
        }
        for (pattern, text) in [
            (r"^\d$", "٣"),
            (r"^\s$", "\u{a0}"),
            (r"^[\w]$", "é"),
            ("^[+--]$", "*"),
            (r"^\Qa.b\E$", "axb"),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
            assert!(!compiled.is_match(text), "{pattern} and {text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        for (pattern, why) in [
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
        ] {
            let said = compile(pattern).unwrap_err().to_string();
            assert_eq!(said, format!("error parsing regexp: {why}"));
        }
    }
}
