//! What Go says about a text that is not JSON, and which texts it reads though others do not.
//!
//! Only looked at after a body could not be read: the sentence goes to the client, who may well
//! compare it with Kubernetes'.

/// Why a text is not JSON, in Go's words; `depth` is how deep it may be nested.
pub(super) fn check(bytes: &[u8], depth: usize) -> Result<(), String> {
    let mut scanner = Scanner {
        bytes,
        at: 0,
        open: Vec::new(),
        depth,
    };
    scanner.document()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The brackets that are open.
    open: Vec<u8>,
    depth: usize,
}

type Checked = Result<(), String>;

impl Scanner<'_> {
    fn document(&mut self) -> Checked {
        self.value()?;
        loop {
            // After a value: what may follow depends on what is open.
            let byte = self.skip_spaces();
            match (self.open.last(), byte) {
                (None, None) => return Ok(()),
                (None, Some(_)) => return self.unexpected("after top-level value"),
                (Some(_), None) => return end(),
                (Some(b'{'), Some(b',')) => {
                    self.at += 1;
                    self.key()?;
                    self.value()?;
                }
                (Some(b'['), Some(b',')) => {
                    self.at += 1;
                    self.value()?;
                }
                (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => {
                    self.at += 1;
                    self.open.pop();
                }
                (Some(b'{'), Some(_)) => return self.unexpected("after object key:value pair"),
                (Some(_), Some(_)) => return self.unexpected("after array element"),
            }
        }
    }

    fn skip_spaces(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// A value up to where something must follow it: brackets stay open once they hold something.
    fn value(&mut self) -> Checked {
        loop {
            match self.skip_spaces() {
                None => return end(),
                Some(bracket @ (b'{' | b'[')) => {
                    if self.open.len() >= self.depth {
                        return self.unexpected("exceeded max depth");
                    }
                    self.at += 1;
                    let closing = if bracket == b'{' { b'}' } else { b']' };
                    if self.skip_spaces() == Some(closing) {
                        self.at += 1;
                        return Ok(());
                    }
                    self.open.push(bracket);
                    if bracket == b'{' {
                        self.key()?;
                    }
                }
                Some(b'"') => return self.text(),
                Some(b't') => return self.literal("true"),
                Some(b'f') => return self.literal("false"),
                Some(b'n') => return self.literal("null"),
                Some(b'-' | b'0'..=b'9') => return self.number(),
                Some(_) => return self.unexpected("looking for beginning of value"),
            }
        }
    }

    fn key(&mut self) -> Checked {
        match self.skip_spaces() {
            None => return end(),
            Some(b'"') => self.text()?,
            Some(_) => return self.unexpected("looking for beginning of object key string"),
        }
        match self.skip_spaces() {
            None => end(),
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => self.unexpected("after object key"),
        }
    }

    fn text(&mut self) -> Checked {
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                None => return end(),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0..0x20) => return self.unexpected("in string literal"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Checked {
        match self.bytes.get(self.at) {
            None => return end(),
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => {}
            Some(b'u') => {
                for _ in 0..4 {
                    self.at += 1;
                    match self.bytes.get(self.at) {
                        None => return end(),
                        Some(digit) if digit.is_ascii_hexdigit() => {}
                        Some(_) => return self.unexpected("in \\u hexadecimal character escape"),
                    }
                }
            }
            Some(_) => return self.unexpected("in string escape code"),
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Checked {
        for (at, expected) in word.bytes().enumerate() {
            match self.bytes.get(self.at) {
                None => return end(),
                Some(byte) if *byte == expected => self.at += 1,
                Some(_) if at == 0 => return self.unexpected("looking for beginning of value"),
                Some(_) => {
                    let expected = char::from(expected);
                    return self.unexpected(&format!("in literal {word} (expecting '{expected}')"));
                }
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Checked {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            None => return end(),
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(_) => return self.unexpected("in numeric literal"),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, place: &str) -> Checked {
        match self.bytes.get(self.at) {
            None => end(),
            Some(byte) if byte.is_ascii_digit() => {
                self.digits();
                Ok(())
            }
            Some(_) => self.unexpected(place),
        }
    }

    fn unexpected(&self, place: &str) -> Checked {
        let found = self.bytes.get(self.at).copied().unwrap_or_default();
        Err(format!("invalid character '{}' {place}", shown(found)))
    }
}

fn end() -> Checked {
    Err("unexpected end of JSON input".to_owned())
}

/// A byte as Go shows it: as the character of that number.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => "\\'".to_owned(),
        b'\\' => "\\\\".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        0x0b => "\\v".to_owned(),
        0x0c => "\\f".to_owned(),
        0..0x20 | 0x7f => format!("\\x{byte:02x}"),
        0x80..=0xa0 | 0xad => format!("\\u{byte:04x}"),
        _ => char::from(byte).to_string(),
    }
}

/// A JSON text with U+FFFD for every byte that is not UTF-8 and every half of a surrogate pair, as
/// Go reads it; `None` when there is nothing to replace.
pub(super) fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        mend_escapes(chunk.valid().as_bytes(), &mut out);
        for _ in chunk.invalid() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    (out != bytes).then_some(out)
}

fn mend_escapes(text: &[u8], out: &mut Vec<u8>) {
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?;
        let digits = escape.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let length = match unit(at) {
            Some(0xd800..0xdc00) if matches!(unit(at + 6), Some(0xdc00..0xe000)) => 12,
            Some(0xd800..0xe000) => {
                out.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            Some(_) => 6,
            None => 2,
        };
        let end = (at + length).min(text.len());
        out.extend_from_slice(&text[at..end]);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_json_reader_on_what_is_json(text in "[\\[\\]{}\",:0-9.eE+\\-truefalsn \\\\]{0,24}") {
            let read = serde_json::from_str::<serde_json::Value>(&text);
            // A number may be too large for one reader and well formed all the same.
            let too_large = read.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
            prop_assert_eq!(check(text.as_bytes(), 100).is_ok(), read.is_ok() || too_large);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = check(&bytes, 8);
            let _ = mended(&bytes);
        }

        #[test]
        fn what_is_whole_needs_no_mending(text in "\\PC{0,40}") {
            let json = serde_json::Value::from(text).to_string();
            prop_assert_eq!(mended(json.as_bytes()), None);
        }
    }
}
