//! Regular expressions.

use regex::bytes::Regex;

use super::{Result, Row, Type, fail, int};
use crate::template::error::Error;
use crate::template::value::Value;

const S: Type = Type::Str;
const I: Type = Type::Int;

pub(super) const TABLE: &[Row] = &[
    ("regexMatch", &[S, S], None, |_, args| {
        Ok(Value::Bool(
            compile(args, "").is_ok_and(|regex| regex.is_match(args[1].bytes())),
        ))
    }),
    ("mustRegexMatch", &[S, S], None, |_, args| {
        Ok(Value::Bool(compile(args, "")?.is_match(args[1].bytes())))
    }),
    ("regexFind", &[S, S], None, |_, args| find(args, PANICS)),
    ("mustRegexFind", &[S, S], None, |_, args| find(args, "")),
    ("regexFindAll", &[S, S, I], None, |_, args| {
        find_all(args, PANICS)
    }),
    ("mustRegexFindAll", &[S, S, I], None, |_, args| {
        find_all(args, "")
    }),
    ("regexReplaceAll", &[S, S, S], None, |context, args| {
        replace(context, args, PANICS, true)
    }),
    ("mustRegexReplaceAll", &[S, S, S], None, |context, args| {
        replace(context, args, "", true)
    }),
    (
        "regexReplaceAllLiteral",
        &[S, S, S],
        None,
        |context, args| replace(context, args, PANICS, false),
    ),
    (
        "mustRegexReplaceAllLiteral",
        &[S, S, S],
        None,
        |context, args| replace(context, args, "", false),
    ),
    ("regexSplit", &[S, S, I], None, |_, args| {
        split(args, PANICS)
    }),
    ("mustRegexSplit", &[S, S, I], None, |_, args| {
        split(args, "")
    }),
    ("regexQuoteMeta", &[S], None, |_, args| {
        let mut out = Vec::new();
        for byte in args[0].bytes() {
            if br"\.+*?()|[]{}^$".contains(byte) {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        Ok(Value::str(out))
    }),
];

/// How the message of a pattern begins that is compiled by what panics.
const PANICS: &str = "regexp: Compile(";

fn compile(args: &[Value], prefix: &str) -> std::result::Result<Regex, Error> {
    let pattern = args[0].text();
    match windlass_regexp::compile_bytes(&pattern) {
        Ok(regex) => Ok(regex),
        Err(why) if prefix.is_empty() => fail(why.to_string()),
        Err(why) => {
            let shown = if pattern.contains('`') {
                crate::quote::quote(pattern.as_bytes())
            } else {
                format!("`{pattern}`")
            };
            fail(format!("{prefix}{shown}): {why}"))
        }
    }
}

/// The matches, at most so many unless that is negative: an empty one may not follow another at once.
fn matches(regex: &Regex, text: &[u8], most: i64) -> Vec<(usize, usize)> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut last_end = None;
    for one in regex.find_iter(text) {
        if found.len() >= most {
            break;
        }
        if one.start() == one.end() && last_end == Some(one.start()) {
            continue;
        }
        last_end = Some(one.end());
        found.push((one.start(), one.end()));
    }
    found
}

fn find(args: &[Value], prefix: &str) -> Result {
    let regex = compile(args, prefix)?;
    let text = args[1].bytes();
    Ok(Value::str(
        regex.find(text).map_or(&b""[..], |found| found.as_bytes()),
    ))
}

fn find_all(args: &[Value], prefix: &str) -> Result {
    let regex = compile(args, prefix)?;
    let text = args[1].bytes();
    let found = matches(&regex, text, int(&args[2]));
    Ok(Value::strings(
        found.into_iter().map(|(from, to)| &text[from..to]),
    ))
}

fn replace(context: &super::Context<'_>, args: &[Value], prefix: &str, expands: bool) -> Result {
    let regex = compile(args, prefix)?;
    let (text, with) = (args[1].bytes(), args[2].bytes());
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    let mut last_end = None;
    for captures in regex.captures_iter(text) {
        let Some(whole) = captures.get(0) else {
            continue;
        };
        if whole.start() == whole.end() && last_end == Some(whole.start()) {
            continue;
        }
        last_end = Some(whole.end());
        out.extend_from_slice(&text[at..whole.start()]);
        if expands {
            expand(&captures, &regex, with, &mut out);
        } else {
            out.extend_from_slice(with);
        }
        at = whole.end();
        context.env.fits(out.len())?;
    }
    out.extend_from_slice(&text[at..]);
    Ok(Value::str(out))
}

/// Writes a replacement, in which `$1`, `$name` and `${name}` stand for groups.
fn expand(captures: &regex::bytes::Captures<'_>, regex: &Regex, with: &[u8], out: &mut Vec<u8>) {
    let mut rest = with;
    while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if let Some(after) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = after;
            continue;
        }
        let (braced, inner) = match rest.strip_prefix(b"{") {
            Some(inner) => (true, inner),
            None => (false, rest),
        };
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = inner.iter().take_while(|byte| is_word(byte)).count();
        let is_closed = !braced || inner.get(length) == Some(&b'}');
        if length == 0 || !is_closed {
            out.push(b'$');
            continue;
        }
        let name = String::from_utf8_lossy(&inner[..length]).into_owned();
        rest = &inner[length + usize::from(braced)..];
        let group = match name.parse::<usize>() {
            Ok(index) => captures.get(index),
            Err(_) => {
                let known = regex.capture_names().flatten().any(|other| other == name);
                known.then(|| captures.name(&name)).flatten()
            }
        };
        out.extend_from_slice(group.map_or(&b""[..], |group| group.as_bytes()));
    }
    out.extend_from_slice(rest);
}

fn split(args: &[Value], prefix: &str) -> Result {
    let regex = compile(args, prefix)?;
    let (text, most) = (args[1].bytes(), int(&args[2]));
    if most == 0 {
        return Ok(Value::strings(Vec::<&[u8]>::new()));
    }
    if !args[0].bytes().is_empty() && text.is_empty() {
        return Ok(Value::strings([""]));
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut from, mut end) = (0, 0);
    for (start, stop) in matches(&regex, text, most) {
        if most > 0 && super::length(parts.len()) == most - 1 {
            break;
        }
        end = start;
        if stop != 0 {
            parts.push(&text[from..end]);
        }
        from = stop;
    }
    if end != text.len() {
        parts.push(&text[from..]);
    }
    Ok(Value::strings(parts))
}
