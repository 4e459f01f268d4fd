//! Plain, quoted and block scalars.

use super::{
    Mark, Scanned, Scanner, Style, Token, is_blank, is_blank_or_end, is_break, is_break_or_end,
};

impl Scanner {
    pub(super) fn block_scalar(&mut self, is_literal: bool) -> Scanned<()> {
        let start = self.mark;
        self.skip();
        let mut chomping = 0_i8;
        let mut increment = 0_isize;
        for _ in 0..2 {
            match self.at(0) {
                '+' if chomping == 0 => chomping = 1,
                '-' if chomping == 0 => chomping = -1,
                '0' if increment == 0 => {
                    return self.fail("found an indentation indicator equal to 0", start);
                }
                digit @ '1'..='9' if increment == 0 => {
                    increment = isize::try_from(digit.to_digit(10).unwrap_or(1)).unwrap_or(1);
                }
                _ => break,
            }
            self.skip();
        }
        while is_blank(self.at(0)) {
            self.skip();
        }
        if self.at(0) == '#' {
            while !is_break_or_end(self.at(0)) {
                self.skip();
            }
        }
        if !is_break_or_end(self.at(0)) {
            return self.fail("did not find expected comment or line break", start);
        }
        if is_break(self.at(0)) {
            self.read_break(&mut String::new());
        }
        let mut indent = match increment {
            0 => 0,
            increment => self.indent.max(0) + increment,
        };
        let mut text = String::new();
        let mut leading_break = String::new();
        let mut trailing_breaks = String::new();
        self.block_breaks(&mut indent, &mut trailing_breaks, start)?;
        let mut was_blank = false;
        while self.column() == indent && self.at(0) != '\0' {
            let is_blank_now = is_blank(self.at(0));
            if !is_literal && !was_blank && !is_blank_now && leading_break.starts_with('\n') {
                if trailing_breaks.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&leading_break);
            }
            leading_break.clear();
            text.push_str(&trailing_breaks);
            trailing_breaks.clear();
            was_blank = is_blank_now;
            while !is_break_or_end(self.at(0)) {
                self.read(&mut text);
            }
            if is_break(self.at(0)) {
                self.read_break(&mut leading_break);
            }
            self.block_breaks(&mut indent, &mut trailing_breaks, start)?;
        }
        if chomping != -1 {
            text.push_str(&leading_break);
        }
        if chomping == 1 {
            text.push_str(&trailing_breaks);
        }
        self.push(Token::Scalar(text, Style::Block), start);
        Ok(())
    }

    /// Reads indentation and empty lines of a block scalar, and finds its indentation if it is open.
    fn block_breaks(
        &mut self,
        indent: &mut isize,
        breaks: &mut String,
        start: Mark,
    ) -> Scanned<()> {
        let mut deepest = 0;
        loop {
            while (*indent == 0 || self.column() < *indent) && self.at(0) == ' ' {
                self.skip();
            }
            deepest = deepest.max(self.column());
            if (*indent == 0 || self.column() < *indent) && self.at(0) == '\t' {
                return self.fail(
                    "found a tab character where an indentation space is expected",
                    start,
                );
            }
            if !is_break(self.at(0)) {
                break;
            }
            self.read_break(breaks);
        }
        if *indent == 0 {
            *indent = deepest.max(self.indent + 1).max(1);
        }
        Ok(())
    }

    pub(super) fn flow_scalar(&mut self, is_single: bool) -> Scanned<()> {
        let start = self.mark;
        let quote = if is_single { '\'' } else { '"' };
        self.skip();
        let mut text = String::new();
        loop {
            if self.is_document_indicator('-') || self.is_document_indicator('.') {
                return self.fail("found unexpected document indicator", start);
            }
            if self.at(0) == '\0' {
                return self.fail("found unexpected end of stream", start);
            }
            let mut is_escaped_break = false;
            while !is_blank_or_end(self.at(0)) {
                match self.at(0) {
                    '\'' if is_single && self.at(1) == '\'' => {
                        text.push('\'');
                        self.skip();
                        self.skip();
                    }
                    c if c == quote => break,
                    '\\' if !is_single && is_break(self.at(1)) => {
                        self.skip();
                        self.read_break(&mut String::new());
                        is_escaped_break = true;
                        break;
                    }
                    '\\' if !is_single => self.escape(&mut text, start)?,
                    _ => self.read(&mut text),
                }
            }
            if self.at(0) == quote {
                break;
            }
            self.fold(&mut text, is_escaped_break, None)?;
        }
        self.skip();
        self.push(Token::Scalar(text, Style::Quoted), start);
        Ok(())
    }

    /// Reads blanks and line ends within a scalar: one line end is a space, more are one less.
    ///
    /// For a plain scalar, `plain` says where it began and how deep it must stand.
    fn fold(
        &mut self,
        text: &mut String,
        is_escaped: bool,
        plain: Option<(Mark, isize)>,
    ) -> Scanned<bool> {
        let mut blanks = String::new();
        let mut leading_break = String::new();
        let mut trailing_breaks = String::new();
        let mut has_break = is_escaped;
        while is_blank(self.at(0)) || is_break(self.at(0)) {
            if is_blank(self.at(0)) {
                if let Some((start, indent)) = plain
                    && has_break
                    && self.column() < indent
                    && self.at(0) == '\t'
                {
                    return self.fail("found a tab character that violates indentation", start);
                }
                if has_break {
                    self.skip();
                } else {
                    self.read(&mut blanks);
                }
            } else if has_break {
                self.read_break(&mut trailing_breaks);
            } else {
                blanks.clear();
                self.read_break(&mut leading_break);
                has_break = true;
            }
        }
        if has_break {
            if leading_break.starts_with('\n') {
                if trailing_breaks.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&leading_break);
            }
            text.push_str(&trailing_breaks);
        } else {
            text.push_str(&blanks);
        }
        Ok(has_break)
    }

    fn escape(&mut self, text: &mut String, start: Mark) -> Scanned<()> {
        let digits = match self.at(1) {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => {
                text.push(match other {
                    '0' => '\0',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    't' | '\t' => '\t',
                    'n' => '\n',
                    'v' => '\u{b}',
                    'f' => '\u{c}',
                    'r' => '\r',
                    'e' => '\u{1b}',
                    ' ' | '"' | '\'' | '\\' | '/' => other,
                    'N' => '\u{85}',
                    '_' => '\u{a0}',
                    'L' => '\u{2028}',
                    'P' => '\u{2029}',
                    _ => return self.fail("found unknown escape character", start),
                });
                self.skip();
                self.skip();
                return Ok(());
            }
        };
        self.skip();
        self.skip();
        let mut code = 0_u32;
        for ahead in 0..digits {
            let Some(digit) = self.at(ahead).to_digit(16) else {
                return self.fail("did not find expected hexdecimal number", start);
            };
            code = code.wrapping_mul(16).wrapping_add(digit);
        }
        let Some(c) = char::from_u32(code) else {
            return self.fail("found invalid Unicode character escape code", start);
        };
        text.push(c);
        for _ in 0..digits {
            self.skip();
        }
        Ok(())
    }

    pub(super) fn plain_scalar(&mut self) -> Scanned<()> {
        let start = self.mark;
        let indent = self.indent + 1;
        let mut text = String::new();
        let mut length = 0;
        let mut has_break = false;
        loop {
            if self.is_document_indicator('-') || self.is_document_indicator('.') {
                break;
            }
            if self.at(0) == '#' {
                break;
            }
            let before = text.len();
            while !is_blank_or_end(self.at(0)) {
                let (c, after) = (self.at(0), self.at(1));
                let is_end = (c == ':' && is_blank_or_end(after))
                    || (self.flow > 0 && matches!(c, ',' | '?' | '[' | ']' | '{' | '}'));
                if is_end {
                    break;
                }
                self.read(&mut text);
            }
            if text.len() > before || length == 0 {
                length = text.len();
                has_break = false;
            }
            if !(is_blank(self.at(0)) || is_break(self.at(0))) {
                break;
            }
            has_break |= self.fold(&mut text, false, Some((start, indent)))?;
            if self.flow == 0 && self.column() < indent {
                break;
            }
        }
        text.truncate(length);
        self.push(Token::Scalar(text, Style::Plain), start);
        if has_break {
            self.simple_key_allowed = true;
        }
        Ok(())
    }
}
