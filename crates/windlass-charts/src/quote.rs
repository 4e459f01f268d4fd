//! Quoted strings as Go writes and reads them.

use std::sync::OnceLock;

use regex::Regex;

/// The bytes of a string, character by character; a byte that is in none comes alone.
pub(crate) fn chars(bytes: &[u8]) -> impl Iterator<Item = Result<char, u8>> + '_ {
    bytes.utf8_chunks().flat_map(|chunk| {
        chunk
            .valid()
            .chars()
            .map(Ok)
            .chain(chunk.invalid().iter().map(|byte| Err(*byte)))
    })
}

/// Whether a character can be seen, or is the space of ASCII.
pub(crate) fn is_print(c: char) -> bool {
    static PRINTED: OnceLock<Option<Regex>> = OnceLock::new();
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    let printed = PRINTED.get_or_init(|| Regex::new(r"[\p{L}\p{M}\p{N}\p{P}\p{S}]").ok());
    let mut buffer = [0; 4];
    printed
        .as_ref()
        .is_some_and(|printed| printed.is_match(c.encode_utf8(&mut buffer)))
}

/// `strconv.Quote`.
pub(crate) fn quote(bytes: &[u8]) -> String {
    quote_with(bytes, '"', false)
}

/// `strconv.QuoteToASCII`.
pub(crate) fn quote_ascii(bytes: &[u8]) -> String {
    quote_with(bytes, '"', true)
}

/// `strconv.QuoteRune`.
pub(crate) fn quote_char(c: char, ascii: bool) -> String {
    quote_with(c.to_string().as_bytes(), '\'', ascii)
}

fn quote_with(bytes: &[u8], mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(mark);
    for c in chars(bytes) {
        match c {
            Ok(c) if c == mark || c == '\\' => {
                out.push('\\');
                out.push(c);
            }
            Ok(c) if is_print(c) && (c.is_ascii() || !ascii) => out.push(c),
            Ok('\u{7}') => out.push_str("\\a"),
            Ok('\u{8}') => out.push_str("\\b"),
            Ok('\u{c}') => out.push_str("\\f"),
            Ok('\n') => out.push_str("\\n"),
            Ok('\r') => out.push_str("\\r"),
            Ok('\t') => out.push_str("\\t"),
            Ok('\u{b}') => out.push_str("\\v"),
            Ok(c) if c < ' ' || c == '\u{7f}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            Ok(c) if u32::from(c) < 0x10000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            Ok(c) => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            Err(byte) => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push(mark);
    out
}

/// `strconv.Unquote` of a string in double quotes or backquotes; nothing if it is not one.
pub(crate) fn unquote(text: &str) -> Option<Vec<u8>> {
    if let Some(raw) = text.strip_prefix('`') {
        let raw = raw.strip_suffix('`')?;
        return (!raw.contains('`')).then(|| raw.replace('\r', "").into_bytes());
    }
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        if rest.starts_with(['"', '\n']) {
            return None;
        }
        rest = unquote_char(rest, '"', &mut out)?;
    }
    Some(out)
}

/// The character that a constant in single quotes stands for.
pub(crate) fn unquote_rune(text: &str) -> Option<char> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    if inner.starts_with('\'') {
        return None;
    }
    let mut out = Vec::new();
    let rest = unquote_char(inner, '\'', &mut out)?;
    if !rest.is_empty() {
        return None;
    }
    match std::str::from_utf8(&out) {
        Ok(text) => text.chars().next(),
        // An escaped byte is the character of that number.
        Err(_) => out.first().map(|byte| char::from(*byte)),
    }
}

/// Reads one character or escape into `out`, and gives what follows.
fn unquote_char<'a>(text: &'a str, mark: char, out: &mut Vec<u8>) -> Option<&'a str> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let mut buffer = [0; 4];
    if first != '\\' {
        out.extend_from_slice(first.encode_utf8(&mut buffer).as_bytes());
        return Some(chars.as_str());
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let digits = |count: usize, base: u32| {
        let digits = rest.get(..count)?;
        let is_valid = digits.chars().all(|c| c.is_digit(base));
        let value = u32::from_str_radix(digits, base)
            .ok()
            .filter(|_| is_valid)?;
        Some((value, &rest[count..]))
    };
    let plain = match escape {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '\'' | '"' if escape == mark => u8::try_from(escape).ok()?,
        'x' => {
            let (value, rest) = digits(2, 16)?;
            out.push(u8::try_from(value).ok()?);
            return Some(rest);
        }
        '0'..='7' => {
            let all = text.get(1..4)?;
            let is_octal = all.chars().all(|c| c.is_digit(8));
            let value = u32::from_str_radix(all, 8).ok().filter(|_| is_octal)?;
            out.push(u8::try_from(value).ok()?);
            return text.get(4..);
        }
        'u' | 'U' => {
            let (value, rest) = digits(if escape == 'u' { 4 } else { 8 }, 16)?;
            let c = char::from_u32(value)?;
            out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            return Some(rest);
        }
        _ => return None,
    };
    out.push(plain);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_and_unquoting_are_inverse() {
        for (bytes, quoted) in [
            (&b"a\"b\\c\n\t\x01\x7f"[..], r#""a\"b\\c\n\t\x01\x7f""#),
            ("é\u{200b}\u{1f600}".as_bytes(), "\"é\\u200b😀\""),
            (b"\xff", r#""\xff""#),
        ] {
            assert_eq!(quote(bytes), quoted);
            assert_eq!(unquote(quoted).unwrap(), bytes);
        }
        assert_eq!(unquote_rune(r"'\n'"), Some('\n'));
        assert_eq!(unquote(r#""\q""#), None);
    }
}
