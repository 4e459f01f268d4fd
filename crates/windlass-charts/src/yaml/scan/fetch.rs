//! Which token comes next: simple keys, indentation, and what begins and ends collections.

use super::{
    MAX_DEPTH, Mark, Scanned, Scanner, SimpleKey, Token, is_blank, is_blank_or_end, is_break,
    is_break_or_end,
};

/// How long a key that is not marked as one may be, in characters.
const MAX_SIMPLE_KEY: usize = 1024;

impl Scanner {
    /// Whether a simple key can still be one.
    pub(super) fn is_valid(&mut self, index: usize) -> Scanned<bool> {
        let key = self.simple_keys[index];
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < self.mark.line || key.mark.index + MAX_SIMPLE_KEY < self.mark.index {
            if key.required {
                return self.fail("could not find expected ':'", key.mark);
            }
            self.simple_keys[index].possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    pub(super) fn save_simple_key(&mut self) -> Scanned<()> {
        if self.simple_key_allowed {
            let key = SimpleKey {
                possible: true,
                required: self.flow == 0 && self.indent == self.column(),
                token: self.taken + self.tokens.len(),
                mark: self.mark,
            };
            self.remove_simple_key()?;
            if let Some(last) = self.simple_keys.last_mut() {
                *last = key;
            }
        }
        Ok(())
    }

    fn remove_simple_key(&mut self) -> Scanned<()> {
        let Some(last) = self.simple_keys.last_mut() else {
            return Ok(());
        };
        let key = *last;
        last.possible = false;
        if key.possible && key.required {
            return self.fail("could not find expected ':'", key.mark);
        }
        Ok(())
    }

    /// Begins a block collection if the column is deeper than the open one.
    fn roll_indent(
        &mut self,
        column: isize,
        at: Option<usize>,
        start: Token,
        mark: Mark,
    ) -> Scanned<()> {
        if self.flow > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_DEPTH {
            return self.fail(&format!("exceeded max depth of {MAX_DEPTH}"), mark);
        }
        let at = at.map_or(self.tokens.len(), |token| token.saturating_sub(self.taken));
        self.tokens.insert(at.min(self.tokens.len()), (start, mark));
        Ok(())
    }

    /// Ends the block collections that are deeper than the column.
    fn unroll_indent(&mut self, column: isize) {
        if self.flow > 0 {
            return;
        }
        while self.indent > column {
            self.tokens.push_back((Token::BlockEnd, self.mark));
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    pub(super) fn fetch(&mut self) -> Scanned<()> {
        self.skip_to_token();
        self.unroll_indent(self.column());
        let (c, after) = (self.at(0), self.at(1));
        if c == '\0' {
            return self.fetch_end();
        }
        if self.mark.column == 0 && c == '%' {
            self.unroll_indent(-1);
            self.remove_simple_key()?;
            self.simple_key_allowed = false;
            return self.directive();
        }
        for (indicator, token) in [('-', Token::DocumentStart), ('.', Token::DocumentEnd)] {
            if self.is_document_indicator(indicator) {
                self.unroll_indent(-1);
                self.remove_simple_key()?;
                self.simple_key_allowed = false;
                self.skip_and_push(token, 3);
                return Ok(());
            }
        }
        match c {
            '[' => self.flow_start(Token::FlowSequenceStart),
            '{' => self.flow_start(Token::FlowMappingStart),
            ']' => self.flow_end(Token::FlowSequenceEnd),
            '}' => self.flow_end(Token::FlowMappingEnd),
            ',' => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.skip_and_push(Token::FlowEntry, 1);
                Ok(())
            }
            '-' if is_blank_or_end(after) => self.block_entry(),
            '?' if self.flow > 0 || is_blank_or_end(after) => self.key(),
            ':' if self.flow > 0 || is_blank_or_end(after) => self.value(),
            '*' | '&' => self.anchor(c == '*'),
            '!' => self.tag(),
            '|' | '>' if self.flow == 0 => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.block_scalar(c == '|')
            }
            '\'' | '"' => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                self.flow_scalar(c == '\'')
            }
            _ if self.begins_plain(c, after) => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                self.plain_scalar()
            }
            _ => self.fail("found character that cannot start any token", self.mark),
        }
    }

    fn begins_plain(&self, c: char, after: char) -> bool {
        let is_special = is_blank_or_end(c) || "-?:,[]{}#&*!|>'\"%@`".contains(c);
        !is_special
            || (c == '-' && !is_blank(after))
            || (self.flow == 0 && matches!(c, '?' | ':') && !is_blank_or_end(after))
    }

    fn fetch_end(&mut self) -> Scanned<()> {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(Token::StreamEnd, self.mark);
        self.ended = true;
        Ok(())
    }

    fn flow_start(&mut self, token: Token) -> Scanned<()> {
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey::default());
        self.flow += 1;
        if self.flow > MAX_DEPTH {
            return self.fail(&format!("exceeded max depth of {MAX_DEPTH}"), self.mark);
        }
        self.simple_key_allowed = true;
        self.skip_and_push(token, 1);
        Ok(())
    }

    fn flow_end(&mut self, token: Token) -> Scanned<()> {
        self.remove_simple_key()?;
        if self.flow > 0 {
            self.flow -= 1;
            self.simple_keys.pop();
        }
        self.simple_key_allowed = false;
        self.skip_and_push(token, 1);
        Ok(())
    }

    fn block_entry(&mut self) -> Scanned<()> {
        if self.flow == 0 {
            if !self.simple_key_allowed {
                return self.fail(
                    "block sequence entries are not allowed in this context",
                    self.mark,
                );
            }
            self.roll_indent(self.column(), None, Token::BlockSequenceStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.skip_and_push(Token::BlockEntry, 1);
        Ok(())
    }

    fn key(&mut self) -> Scanned<()> {
        if self.flow == 0 {
            if !self.simple_key_allowed {
                return self.fail("mapping keys are not allowed in this context", self.mark);
            }
            self.roll_indent(self.column(), None, Token::BlockMappingStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow == 0;
        self.skip_and_push(Token::Key, 1);
        Ok(())
    }

    fn value(&mut self) -> Scanned<()> {
        let last = self.simple_keys.len().saturating_sub(1);
        if self.is_valid(last)? {
            let key = self.simple_keys[last];
            let at = key.token.saturating_sub(self.taken).min(self.tokens.len());
            self.tokens.insert(at, (Token::Key, key.mark));
            let column = isize::try_from(key.mark.column).unwrap_or(isize::MAX);
            self.roll_indent(column, Some(key.token), Token::BlockMappingStart, key.mark)?;
            self.simple_keys[last].possible = false;
            self.simple_key_allowed = false;
        } else {
            if self.flow == 0 {
                if !self.simple_key_allowed {
                    return self.fail("mapping values are not allowed in this context", self.mark);
                }
                self.roll_indent(self.column(), None, Token::BlockMappingStart, self.mark)?;
            }
            self.simple_key_allowed = self.flow == 0;
        }
        self.skip_and_push(Token::Value, 1);
        Ok(())
    }

    fn skip_to_token(&mut self) {
        loop {
            if self.mark.column == 0 && self.at(0) == '\u{feff}' {
                self.skip();
            }
            while self.at(0) == ' '
                || (self.at(0) == '\t' && (self.flow > 0 || !self.simple_key_allowed))
            {
                self.skip();
            }
            if self.at(0) == '#' {
                while !is_break_or_end(self.at(0)) {
                    self.skip();
                }
            }
            if !is_break(self.at(0)) {
                return;
            }
            self.read_break(&mut String::new());
            if self.flow == 0 {
                self.simple_key_allowed = true;
            }
        }
    }
}
