//! Directives, anchors and tags: what is said about a document or a node in front of it.

use super::{Scanned, Scanner, Token, is_blank, is_blank_or_end, is_break_or_end, is_word};

impl Scanner {
    pub(super) fn directive(&mut self) -> Scanned<()> {
        let mark = self.mark;
        self.skip();
        let mut name = String::new();
        while is_word(self.at(0)) {
            self.read(&mut name);
        }
        if name.is_empty() {
            return self.fail("could not find expected directive name", mark);
        }
        if !is_blank_or_end(self.at(0)) {
            return self.fail("found unexpected non-alphabetical character", mark);
        }
        let mut words = Vec::new();
        loop {
            while is_blank(self.at(0)) {
                self.skip();
            }
            if is_break_or_end(self.at(0)) || self.at(0) == '#' {
                break;
            }
            let mut word = String::new();
            while !is_blank_or_end(self.at(0)) {
                self.read(&mut word);
            }
            words.push(word);
        }
        while !is_break_or_end(self.at(0)) {
            self.skip();
        }
        let mut words = words.into_iter();
        let directive = match (name.as_str(), words.next(), words.next(), words.next()) {
            ("YAML", Some(version), None, None) => {
                if version != "1.1" && version != "1.2" {
                    return self.fail("found incompatible YAML document", mark);
                }
                None
            }
            ("TAG", Some(handle), Some(prefix), None) => Some((handle, prefix)),
            ("YAML", ..) => return self.fail("did not find expected version number", mark),
            ("TAG", ..) => return self.fail("did not find expected whitespace", mark),
            _ => return self.fail("found unknown directive name", mark),
        };
        self.push(Token::Directive(directive), mark);
        Ok(())
    }

    pub(super) fn anchor(&mut self, is_alias: bool) -> Scanned<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        self.skip();
        let mut name = String::new();
        while is_word(self.at(0)) {
            self.read(&mut name);
        }
        let next = self.at(0);
        if name.is_empty() || !(is_blank_or_end(next) || "?:,]}%@`".contains(next)) {
            return self.fail(
                "did not find expected alphabetic or numeric character",
                mark,
            );
        }
        let token = if is_alias {
            Token::Alias(name)
        } else {
            Token::Anchor(name)
        };
        self.push(token, mark);
        Ok(())
    }

    fn tag_uri(&mut self) -> String {
        let mut uri = String::new();
        while is_word(self.at(0)) || ";/?:@&=+$,.!~*'()[]%".contains(self.at(0)) {
            if self.at(0) == '\0' {
                break;
            }
            self.read(&mut uri);
        }
        uri
    }

    pub(super) fn tag(&mut self) -> Scanned<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        let (handle, suffix) = if self.at(1) == '<' {
            self.skip();
            self.skip();
            let uri = self.tag_uri();
            if self.at(0) != '>' {
                return self.fail("did not find the expected '>'", mark);
            }
            self.skip();
            (String::new(), uri)
        } else {
            let mut handle = String::new();
            self.read(&mut handle);
            while is_word(self.at(0)) {
                self.read(&mut handle);
            }
            if self.at(0) == '!' {
                self.read(&mut handle);
                let suffix = self.tag_uri();
                if suffix.is_empty() {
                    return self.fail("did not find expected tag URI", mark);
                }
                (handle, suffix)
            } else {
                let mut suffix = handle.split_off(1);
                suffix.push_str(&self.tag_uri());
                // A `!` alone is a tag of its own.
                if suffix.is_empty() {
                    (String::new(), handle)
                } else {
                    (handle, suffix)
                }
            }
        };
        let ends = is_blank_or_end(self.at(0)) || (self.flow > 0 && self.at(0) == ',');
        if !ends {
            return self.fail("did not find expected whitespace or line break", mark);
        }
        self.push(Token::Tag(handle, suffix), mark);
        Ok(())
    }
}
