//! Texts.

use super::{Result, Row, Type, fail, int};
use crate::template::print;
use crate::template::value::Value;

const S: Type = Type::Str;
const I: Type = Type::Int;
const A: Type = Type::Any;

pub(super) const TABLE: &[Row] = &[
    ("hello", &[], None, |_, _| Ok(Value::str("Hello!"))),
    ("abbrev", &[I, S], None, |_, args| {
        Ok(Value::str(abbreviate(args[1].bytes(), 0, int(&args[0]))))
    }),
    ("abbrevboth", &[I, I, S], None, |_, args| {
        let (left, right) = (int(&args[0]), int(&args[1]));
        if right < 4 || (left > 0 && right < 7) {
            return Ok(args[2].clone());
        }
        Ok(Value::str(abbreviate(args[2].bytes(), left, right)))
    }),
    ("trunc", &[I, S], None, |_, args| {
        Ok(Value::str(trunc(int(&args[0]), args[1].bytes())))
    }),
    ("trim", &[S], None, |_, args| {
        text(args, |text| text.trim().to_owned())
    }),
    ("upper", &[S], None, |_, args| text(args, str::to_uppercase)),
    ("lower", &[S], None, |_, args| text(args, lower)),
    ("title", &[S], None, |_, args| text(args, title)),
    ("untitle", &[S], None, |_, args| text(args, untitle)),
    ("substr", &[I, I, S], None, |_, args| {
        substring(int(&args[0]), int(&args[1]), args[2].bytes())
    }),
    ("repeat", &[I, S], None, |context, args| {
        let Ok(count) = usize::try_from(int(&args[0])) else {
            return fail("strings: negative Repeat count");
        };
        context
            .env
            .fits(args[1].bytes().len().saturating_mul(count))?;
        Ok(Value::str(args[1].bytes().repeat(count)))
    }),
    ("trimall", &[S, S], None, |_, args| Ok(trim_all(args))),
    ("trimAll", &[S, S], None, |_, args| Ok(trim_all(args))),
    ("trimSuffix", &[S, S], None, |_, args| {
        let text = args[1].bytes();
        Ok(Value::str(
            text.strip_suffix(args[0].bytes()).unwrap_or(text),
        ))
    }),
    ("trimPrefix", &[S, S], None, |_, args| {
        let text = args[1].bytes();
        Ok(Value::str(
            text.strip_prefix(args[0].bytes()).unwrap_or(text),
        ))
    }),
    ("nospace", &[S], None, |_, args| {
        Ok(Value::str(without_blanks(args[0].bytes())))
    }),
    ("initials", &[S], None, |_, args| {
        Ok(Value::str(initials(args[0].bytes())))
    }),
    ("swapcase", &[S], None, |_, args| text(args, swap_case)),
    ("snakecase", &[S], None, |_, args| {
        text(args, |text| super::cases::joined(text, '_'))
    }),
    ("kebabcase", &[S], None, |_, args| {
        text(args, |text| super::cases::joined(text, '-'))
    }),
    ("camelcase", &[S], None, |_, args| {
        text(args, super::cases::camel)
    }),
    ("wrap", &[I, S], None, |_, args| {
        Ok(Value::str(wrap(
            args[1].bytes(),
            int(&args[0]),
            b"\n",
            false,
        )))
    }),
    ("wrapWith", &[I, S, S], None, |_, args| {
        let line_end = match args[1].bytes() {
            b"" => b"\n",
            other => other,
        };
        Ok(Value::str(wrap(
            args[2].bytes(),
            int(&args[0]),
            line_end,
            true,
        )))
    }),
    ("contains", &[S, S], None, |_, args| {
        Ok(Value::Bool(
            find(args[1].bytes(), args[0].bytes()).is_some(),
        ))
    }),
    ("hasPrefix", &[S, S], None, |_, args| {
        Ok(Value::Bool(args[1].bytes().starts_with(args[0].bytes())))
    }),
    ("hasSuffix", &[S, S], None, |_, args| {
        Ok(Value::Bool(args[1].bytes().ends_with(args[0].bytes())))
    }),
    ("quote", &[], Some(A), |_, args| {
        let quoted: Vec<String> = (args.iter().filter(|arg| !arg.is_nil()))
            .map(|arg| crate::quote::quote(&to_bytes(arg)))
            .collect();
        Ok(Value::str(quoted.join(" ")))
    }),
    ("squote", &[], Some(A), |_, args| {
        let mut out = Vec::new();
        for arg in args.iter().filter(|arg| !arg.is_nil()) {
            if !out.is_empty() {
                out.push(b' ');
            }
            out.push(b'\'');
            print::plain(arg, &mut out);
            out.push(b'\'');
        }
        Ok(Value::str(out))
    }),
    ("cat", &[], Some(A), |_, args| {
        let mut out = Vec::new();
        for (index, arg) in args.iter().filter(|arg| !arg.is_nil()).enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            print::plain(arg, &mut out);
        }
        Ok(Value::str(out))
    }),
    ("indent", &[I, S], None, |context, args| {
        indent(context, args, b"")
    }),
    ("nindent", &[I, S], None, |context, args| {
        indent(context, args, b"\n")
    }),
    ("replace", &[S, S, S], None, |context, args| {
        let (old, new, text) = (args[0].bytes(), args[1].bytes(), args[2].bytes());
        let count = if old.is_empty() {
            text.len() + 1
        } else {
            text.len() / old.len()
        };
        context
            .env
            .fits(text.len().saturating_add(count.saturating_mul(new.len())))?;
        Ok(Value::str(replace(text, old, new)))
    }),
    ("plural", &[S, S, I], None, |_, args| {
        Ok(args[usize::from(int(&args[2]) != 1)].clone())
    }),
    ("toString", &[A], None, |_, args| {
        Ok(Value::str(to_bytes(&args[0])))
    }),
    ("toStrings", &[A], None, |_, args| {
        Ok(Value::strings(to_strings(&args[0])))
    }),
    ("join", &[S, A], None, |_, args| {
        Ok(Value::str(to_strings(&args[1]).join(args[0].bytes())))
    }),
    ("split", &[S, S], None, |_, args| {
        Ok(numbered(split(args[1].bytes(), args[0].bytes(), -1)))
    }),
    ("splitn", &[S, I, S], None, |_, args| {
        Ok(numbered(split(
            args[2].bytes(),
            args[0].bytes(),
            int(&args[1]),
        )))
    }),
    ("splitList", &[S, S], None, |_, args| {
        Ok(Value::strings(split(args[1].bytes(), args[0].bytes(), -1)))
    }),
    ("sortAlpha", &[A], None, |_, args| {
        if args[0].items().is_none() {
            return Ok(Value::strings([to_bytes(&args[0])]));
        }
        let mut all = to_strings(&args[0]);
        all.sort();
        Ok(Value::strings(all))
    }),
];

fn text(args: &[Value], change: impl Fn(&str) -> String) -> Result {
    Ok(Value::str(change(&args[0].text())))
}

/// The place of a text within another.
pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len()).position(|window| window == part)
}

/// Splits a text, into so many parts at most if that is not negative.
pub(super) fn split<'a>(text: &'a [u8], by: &[u8], most: i64) -> Vec<&'a [u8]> {
    if most == 0 {
        return Vec::new();
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = text;
    if by.is_empty() {
        while !rest.is_empty() && parts.len() + 1 < most {
            let length = match crate::quote::chars(rest).next() {
                Some(Ok(c)) => c.len_utf8(),
                _ => 1,
            };
            let (first, after) = rest.split_at(length);
            parts.push(first);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        return parts;
    }
    while parts.len() + 1 < most {
        let Some(at) = find(rest, by) else {
            break;
        };
        parts.push(&rest[..at]);
        rest = &rest[at + by.len()..];
    }
    parts.push(rest);
    parts
}

fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    if old.is_empty() {
        let mut out = new.to_vec();
        for part in split(text, b"", -1) {
            out.extend_from_slice(part);
            out.extend_from_slice(new);
        }
        return out;
    }
    split(text, old, -1).join(new)
}

/// The parts of a text by their numbers: `_0`, `_1` and so on.
fn numbered(parts: Vec<&[u8]>) -> Value {
    let entries = parts
        .into_iter()
        .enumerate()
        .map(|(index, part)| (format!("_{index}").into(), Value::str(part)))
        .collect();
    Value::typed_map(entries, crate::template::value::MapType::Strings)
}

/// A value as a text.
pub(super) fn to_bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Str(bytes) | Value::Bytes(bytes) => bytes.to_vec(),
        Value::Nil | Value::Invalid => b"<nil>".to_vec(),
        other => {
            let mut out = Vec::new();
            print::plain(other, &mut out);
            out
        }
    }
}

/// What is in a list as texts, without what is nil.
pub(super) fn to_strings(value: &Value) -> Vec<Vec<u8>> {
    match value.items() {
        Some(items) => (items.iter().filter(|item| !item.is_nil()))
            .map(to_bytes)
            .collect(),
        None if value.is_nil() => Vec::new(),
        None => vec![to_bytes(value)],
    }
}

fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

fn trunc(count: i64, text: &[u8]) -> &[u8] {
    let length = super::length(text.len());
    if count < 0 {
        return match usize::try_from(length.saturating_add(count)) {
            Ok(from) if from > 0 => &text[from..],
            _ => text,
        };
    }
    match usize::try_from(count) {
        Ok(count) if text.len() > count => &text[..count],
        _ => text,
    }
}

fn substring(from: i64, to: i64, text: &[u8]) -> Result {
    let length = super::length(text.len());
    let (from, to) = if from < 0 {
        (0, to)
    } else if to < 0 || to > length {
        (from, length)
    } else {
        (from, to)
    };
    let bounds = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    match bounds.and_then(|(from, to)| text.get(from..to)) {
        Some(part) => Ok(Value::str(part)),
        None if to > length || to < 0 => fail(format!(
            "runtime error: slice bounds out of range [:{to}]{}",
            if to < 0 {
                String::new()
            } else {
                format!(" with length {length}")
            }
        )),
        None => fail(format!(
            "runtime error: slice bounds out of range [{from}:{to}]"
        )),
    }
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if is_separator(before) {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}

fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !c.is_alphanumeric() && c.is_whitespace()
}

fn untitle(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if c.is_whitespace() {
            begins = true;
            out.push(c);
        } else if begins {
            begins = false;
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
    }
    out
}

fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}

fn trim_all(args: &[Value]) -> Value {
    let cut: Vec<char> = args[0].text().chars().collect();
    Value::str(args[1].text().trim_matches(|c| cut.contains(&c)))
}

/// Byte by byte, as the original goes: what is no ASCII comes out twice encoded.
fn without_blanks(bytes: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| char::from(*byte).is_whitespace();
    if !bytes.iter().any(is_blank) {
        return bytes.to_vec();
    }
    let kept: String = (bytes.iter().filter(|byte| !is_blank(byte)))
        .map(|byte| char::from(*byte))
        .collect();
    kept.into_bytes()
}

fn initials(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut gap = true;
    for byte in bytes {
        let c = char::from(*byte);
        if c.is_whitespace() {
            gap = true;
        } else if gap {
            out.push(c);
            gap = false;
        }
    }
    out
}

fn abbreviate(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let length = super::length(text.len());
    if width < 4 || length <= width {
        return text.to_vec();
    }
    let part = |from: i64, to: i64| {
        let bound = |at: i64| usize::try_from(at).unwrap_or(0).min(text.len());
        text.get(bound(from)..bound(to)).unwrap_or_default()
    };
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return [part(0, width - 3), b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + width - 3 < length {
        let rest = abbreviate(part(offset, length), 0, width - 3);
        return [b"...", rest.as_slice()].concat();
    }
    [b"...", part(length - (width - 3), length)].concat()
}

fn wrap(text: &[u8], width: i64, line_end: &[u8], long_words: bool) -> Vec<u8> {
    let width = usize::try_from(width.max(1)).unwrap_or(1);
    let mut out = Vec::new();
    let mut at = 0;
    while text.len() - at > width {
        if text[at] == b' ' {
            at += 1;
            continue;
        }
        if let Some(space) = text[at..=at + width].iter().rposition(|byte| *byte == b' ') {
            out.extend_from_slice(&text[at..at + space]);
            out.extend_from_slice(line_end);
            at += space + 1;
        } else if long_words {
            out.extend_from_slice(&text[at..at + width]);
            out.extend_from_slice(line_end);
            at += width;
        } else if let Some(space) = text[at + width..].iter().position(|byte| *byte == b' ') {
            out.extend_from_slice(&text[at..at + width + space]);
            out.extend_from_slice(line_end);
            at += width + space + 1;
        } else {
            out.extend_from_slice(&text[at..]);
            at = text.len();
        }
    }
    out.extend_from_slice(&text[at..]);
    out
}

fn indent(context: &super::Context<'_>, args: &[Value], before: &[u8]) -> Result {
    let Ok(count) = usize::try_from(int(&args[0])) else {
        return fail("strings: negative Repeat count");
    };
    let text = args[1].bytes();
    let lines = 1 + text.iter().filter(|byte| **byte == b'\n').count();
    context
        .env
        .fits(text.len().saturating_add(lines.saturating_mul(count)))?;
    let mut out = Vec::with_capacity(before.len() + text.len() + lines * count);
    out.extend_from_slice(before);
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        out.resize(out.len() + count, b' ');
        out.extend_from_slice(line);
    }
    Ok(Value::str(out))
}
