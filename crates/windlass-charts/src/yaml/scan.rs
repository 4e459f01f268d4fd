//! Text to tokens.
//!
//! A key of a mapping is only known to be one when its colon is met. So the scanner remembers where
//! a key may have begun (a *simple key*), and inserts the tokens for the mapping and the key there
//! once the colon comes.

use std::collections::VecDeque;

/// How deeply collections may be nested.
pub(crate) const MAX_DEPTH: usize = 100;
/// How long a key that is not marked as one may be, in characters.
const MAX_SIMPLE_KEY: usize = 1024;

/// A place in the text, counted from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mark {
    index: usize,
    pub(crate) line: usize,
    column: usize,
}

/// What is wrong with a text, as the reader words it.
#[derive(Clone, Debug)]
pub(crate) struct ScanError {
    pub(crate) problem: String,
    /// The line to print, if there is one to print.
    pub(crate) line: usize,
}

impl ScanError {
    pub(crate) fn message(&self) -> String {
        if self.line == 0 {
            format!("yaml: {}", self.problem)
        } else {
            format!("yaml: line {}: {}", self.line, self.problem)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    Block,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    StreamEnd,
    Directive(Option<(String, String)>),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag(String, String),
    Scalar(String, Style),
}

#[derive(Clone, Copy, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

pub(crate) struct Scanner {
    text: Vec<char>,
    mark: Mark,
    tokens: VecDeque<(Token, Mark)>,
    /// How many tokens were taken.
    taken: usize,
    flow: usize,
    /// The column of the block collection that is open, -1 for none.
    indent: isize,
    indents: Vec<isize>,
    simple_key_allowed: bool,
    /// One for each flow level, and one for the block.
    simple_keys: Vec<SimpleKey>,
    ended: bool,
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}
fn is_break_or_end(c: char) -> bool {
    is_break(c) || c == '\0'
}
fn is_blank_or_end(c: char) -> bool {
    is_blank(c) || is_break_or_end(c)
}
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Whether a character may be in a text at all.
pub(crate) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{7e}' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

type Scanned<T> = Result<T, ScanError>;

impl Scanner {
    pub(crate) fn new(text: &[u8]) -> Scanned<Self> {
        let Ok(text) = std::str::from_utf8(text) else {
            return Err(ScanError {
                problem: "invalid leading UTF-8 octet".to_owned(),
                line: 0,
            });
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !text.chars().all(is_allowed) {
            return Err(ScanError {
                problem: "control characters are not allowed".to_owned(),
                line: 0,
            });
        }
        Ok(Self {
            text: text.chars().collect(),
            mark: Mark::default(),
            tokens: VecDeque::new(),
            taken: 0,
            flow: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: true,
            simple_keys: vec![SimpleKey::default()],
            ended: false,
        })
    }

    fn at(&self, ahead: usize) -> char {
        self.text
            .get(self.mark.index + ahead)
            .copied()
            .unwrap_or('\0')
    }

    fn fail<T>(&self, problem: &str, context: Mark) -> Scanned<T> {
        let line = if self.mark.line != 0 {
            self.mark.line + 1
        } else {
            context.line
        };
        Err(ScanError {
            problem: problem.to_owned(),
            line,
        })
    }

    fn skip(&mut self) {
        self.mark.index += 1;
        self.mark.column += 1;
    }

    fn read(&mut self, out: &mut String) {
        out.push(self.at(0));
        self.skip();
    }

    /// Reads the end of a line, which becomes a line feed unless it is a separator of Unicode's.
    fn read_break(&mut self, out: &mut String) {
        match (self.at(0), self.at(1)) {
            ('\r', '\n') => {
                out.push('\n');
                self.mark.index += 1;
            }
            ('\r' | '\n' | '\u{85}', _) => out.push('\n'),
            (other, _) => out.push(other),
        }
        self.mark.index += 1;
        self.mark.column = 0;
        self.mark.line += 1;
    }

    fn column(&self) -> isize {
        isize::try_from(self.mark.column).unwrap_or(isize::MAX)
    }

    /// The next token, which stays.
    pub(crate) fn peek(&mut self) -> Scanned<&(Token, Mark)> {
        self.fill()?;
        match self.tokens.front() {
            Some(token) => Ok(token),
            // After the end comes the end again.
            None => Ok(const {
                &(
                    Token::StreamEnd,
                    Mark {
                        index: 0,
                        line: 0,
                        column: 0,
                    },
                )
            }),
        }
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> Scanned<(Token, Mark)> {
        self.fill()?;
        self.taken += 1;
        Ok(self
            .tokens
            .pop_front()
            .unwrap_or((Token::StreamEnd, self.mark)))
    }

    /// Scans on until the first token is certain: nothing can be inserted in front of it any more.
    fn fill(&mut self) -> Scanned<()> {
        loop {
            if self.ended {
                return Ok(());
            }
            if !self.tokens.is_empty() {
                let mut is_open = false;
                for index in 0..self.simple_keys.len() {
                    if self.simple_keys[index].token == self.taken
                        && self.simple_keys[index].possible
                        && self.is_valid(index)?
                    {
                        is_open = true;
                    }
                }
                if !is_open {
                    return Ok(());
                }
            }
            self.fetch()?;
        }
    }

    /// Whether a simple key can still be one.
    fn is_valid(&mut self, index: usize) -> Scanned<bool> {
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

    fn save_simple_key(&mut self) -> Scanned<()> {
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

    fn push(&mut self, token: Token, mark: Mark) {
        self.tokens.push_back((token, mark));
    }

    fn skip_and_push(&mut self, token: Token, width: usize) {
        let mark = self.mark;
        for _ in 0..width {
            self.skip();
        }
        self.push(token, mark);
    }

    fn is_document_indicator(&self, c: char) -> bool {
        self.mark.column == 0
            && (0..3).all(|ahead| self.at(ahead) == c)
            && is_blank_or_end(self.at(3))
    }

    fn fetch(&mut self) -> Scanned<()> {
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

    fn directive(&mut self) -> Scanned<()> {
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

    fn anchor(&mut self, is_alias: bool) -> Scanned<()> {
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

    fn tag(&mut self) -> Scanned<()> {
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

    fn block_scalar(&mut self, is_literal: bool) -> Scanned<()> {
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

    fn flow_scalar(&mut self, is_single: bool) -> Scanned<()> {
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

    fn plain_scalar(&mut self) -> Scanned<()> {
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
