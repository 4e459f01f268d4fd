//! Where a text stops being JSON, in the words of Go's scanner.

/// What Go says of a text that is not one JSON value, or nothing when it is one.
pub(crate) fn error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.value().and_then(|()| scanner.end()).err()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

type Scan = Result<(), String>;

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte does not belong here.
    fn wrong(&self, context: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quoted(byte)),
        }
    }

    fn end(&mut self) -> Scan {
        self.skip_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("after top-level value")),
        }
    }

    /// One value. Containers are counted, not recursed into: the text may be hostile.
    fn value(&mut self) -> Scan {
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek() != Some(b'}') {
                        open.push(b'{');
                        self.key()?;
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek() != Some(b']') {
                        open.push(b'[');
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.wrong("looking for beginning of value")),
            }
            // A value is complete: what follows depends on what it is in.
            loop {
                let Some(container) = open.last() else {
                    return Ok(());
                };
                self.skip_space();
                match (container, self.peek()) {
                    (b'{', Some(b',')) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (b'[', Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (b'{', Some(b'}')) | (b'[', Some(b']')) => {
                        self.at += 1;
                        open.pop();
                    }
                    (b'{', _) => return Err(self.wrong("after object key:value pair")),
                    _ => return Err(self.wrong("after array element")),
                }
            }
        }
    }

    fn key(&mut self) -> Scan {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.wrong("looking for beginning of object key string"));
        }
        self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.wrong("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Scan {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => {}
                        Some(b'u') => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return Err(self.wrong("in \\u hexadecimal character escape"));
                                }
                            }
                        }
                        _ => return Err(self.wrong("in string escape code")),
                    }
                    self.at += 1;
                }
                Some(byte) if byte >= 0x20 => self.at += 1,
                _ => return Err(self.wrong("in string literal")),
            }
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Scan {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else if !self.digits() {
            return Err(self.wrong("in numeric literal"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.digits() {
                return Err(self.wrong("after decimal point in numeric literal"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                return Err(self.wrong("in exponent of numeric literal"));
            }
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Scan {
        for wanted in word.bytes() {
            if self.peek() != Some(wanted) {
                let wanted = char::from(wanted);
                return Err(self.wrong(&format!("in literal {word} (expecting '{wanted}')")));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A byte as Go shows it: the character of that number.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        7 => r"'\a'".to_owned(),
        8 => r"'\b'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        11 => r"'\v'".to_owned(),
        12 => r"'\f'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mistakes_are_named_as_go_names_them() {
        let said = |text: &str| error(text.as_bytes()).unwrap_or_default();
        assert_eq!(
            said("nonsense: ["),
            "invalid character 'o' in literal null (expecting 'u')"
        );
        assert_eq!(said("{"), "unexpected end of JSON input");
        assert_eq!(
            said("{a"),
            "invalid character 'a' looking for beginning of object key string"
        );
        assert_eq!(said(r#"{"a" 1}"#), "invalid character '1' after object key");
        assert_eq!(
            said("[1,]"),
            "invalid character ']' looking for beginning of value"
        );
        assert_eq!(said("{} x"), "invalid character 'x' after top-level value");
        assert_eq!(said("-"), "unexpected end of JSON input");
        assert_eq!(
            said("1.x"),
            "invalid character 'x' after decimal point in numeric literal"
        );
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_parser_on_what_is_json(text in r#"[\[\]{}:,"a1.e\\u -]{0,12}"#) {
            let parsed = serde_json::from_str::<serde_json::Value>(&text);
            // Numbers beyond range are a matter of decoding, not of syntax.
            if parsed.as_ref().is_ok_and(|_| true) {
                prop_assert_eq!(error(text.as_bytes()), None);
            }
            if error(text.as_bytes()).is_none() && !text.contains('e') && !text.contains('u') {
                prop_assert!(parsed.is_ok(), "{} {:?}", text, parsed);
            }
        }
    }
}
