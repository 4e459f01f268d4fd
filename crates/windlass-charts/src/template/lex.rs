//! Templates to tokens.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Type {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Type {
    /// The keyword that a word is.
    fn keyword(word: &str) -> Option<Self> {
        Some(match word {
            "." => Self::Dot,
            "block" => Self::Block,
            "break" => Self::Break,
            "continue" => Self::Continue,
            "define" => Self::Define,
            "else" => Self::Else,
            "end" => Self::End,
            "if" => Self::If,
            "range" => Self::Range,
            "nil" => Self::Nil,
            "template" => Self::Template,
            "with" => Self::With,
            _ => return None,
        })
    }

    fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Break
                | Self::Continue
                | Self::Dot
                | Self::Define
                | Self::Else
                | Self::End
                | Self::If
                | Self::Nil
                | Self::Range
                | Self::Template
                | Self::With
        )
    }
}

/// A token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) of: Type,
    pub(crate) at: usize,
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    /// How an error names it.
    pub(crate) fn shown(&self) -> String {
        match self.of {
            Type::Eof => "EOF".to_owned(),
            Type::Error => self.text.clone(),
            of if of.is_keyword() => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                let short: String = self.text.chars().take(10).collect();
                format!("{}...", crate::quote::quote(short.as_bytes()))
            }
            _ => crate::quote::quote(self.text.as_bytes()),
        }
    }
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
/// A marker that trims and the space beside it.
const TRIM: usize = 2;

pub(crate) struct Lexer<'a> {
    input: &'a str,
    at: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parens: usize,
    in_action: bool,
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn has_left_trim(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

fn has_right_trim(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_space) && chars.next() == Some('-')
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(input: &'a str) -> Self {
        Self {
            input,
            at: 0,
            start: 0,
            line: 1,
            start_line: 1,
            parens: 0,
            in_action: false,
        }
    }

    fn rest(&self) -> &'a str {
        self.input.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    /// The token from where the last one ended.
    fn token(&mut self, of: Type) -> Token {
        let token = Token {
            of,
            at: self.start,
            text: self
                .input
                .get(self.start..self.at)
                .unwrap_or_default()
                .to_owned(),
            line: self.start_line,
        };
        self.start = self.at;
        self.start_line = self.line;
        token
    }

    /// Moves on over text, counting its lines.
    fn skip_to(&mut self, at: usize) {
        let skipped = self.input.get(self.at..at).unwrap_or_default();
        self.line += skipped.matches('\n').count();
        self.at = at;
    }

    fn ignore(&mut self) {
        self.start = self.at;
        self.start_line = self.line;
    }

    /// An error ends the input.
    fn error(&mut self, message: String) -> Token {
        let token = Token {
            of: Type::Error,
            at: self.start,
            text: message,
            line: self.start_line,
        };
        self.input = "";
        self.at = 0;
        self.start = 0;
        self.in_action = false;
        token
    }

    pub(crate) fn next_token(&mut self) -> Token {
        if self.in_action {
            return self.action();
        }
        loop {
            if let Some(token) = self.text() {
                return token;
            }
        }
    }

    /// Text, the beginning of an action, or nothing behind a comment.
    fn text(&mut self) -> Option<Token> {
        let rest = self.rest();
        let Some(found) = rest.find(LEFT) else {
            self.skip_to(self.input.len());
            return Some(if self.at > self.start {
                self.token(Type::Text)
            } else {
                self.token(Type::Eof)
            });
        };
        if found > 0 {
            let text = &rest[..found];
            let after = &rest[found + LEFT.len()..];
            let kept = if has_left_trim(after) {
                text.trim_end_matches(is_space).len()
            } else {
                found
            };
            let delim = self.at + found;
            self.skip_to(self.at + kept);
            let token = self.token(Type::Text);
            self.skip_to(delim);
            self.ignore();
            if !token.text.is_empty() {
                return Some(token);
            }
        }
        self.left_delim()
    }

    fn left_delim(&mut self) -> Option<Token> {
        self.at += LEFT.len();
        let trim = if has_left_trim(self.rest()) { TRIM } else { 0 };
        if self
            .rest()
            .get(trim..)
            .is_some_and(|rest| rest.starts_with("/*"))
        {
            self.skip_to(self.at + trim);
            self.ignore();
            return self.comment();
        }
        let token = self.token(Type::LeftDelim);
        self.in_action = true;
        self.skip_to(self.at + trim);
        self.ignore();
        self.parens = 0;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token> {
        let Some(end) = self.rest().find("*/") else {
            return Some(self.error("unclosed comment".to_owned()));
        };
        self.skip_to(self.at + end + 2);
        let Some(trims) = self.right_delim() else {
            return Some(self.error("comment ends before closing delimiter".to_owned()));
        };
        self.skip_right_delim(trims);
        self.ignore();
        None
    }

    /// Whether an action ends here, and if so whether it trims what follows.
    fn right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim(rest) && rest[TRIM..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn skip_right_delim(&mut self, trims: bool) {
        self.skip_to(self.at + if trims { TRIM } else { 0 } + RIGHT.len());
        if trims {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches(is_space).len();
            self.skip_to(self.at + blank);
        }
    }

    fn action(&mut self) -> Token {
        if let Some(trims) = self.right_delim() {
            if self.parens > 0 {
                return self.error("unclosed left paren".to_owned());
            }
            if trims {
                self.skip_to(self.at + TRIM);
                self.ignore();
            }
            self.at += RIGHT.len();
            let token = self.token(Type::RightDelim);
            if trims {
                let rest = self.rest();
                let blank = rest.len() - rest.trim_start_matches(is_space).len();
                self.skip_to(self.at + blank);
                self.ignore();
            }
            self.in_action = false;
            return token;
        }
        let Some(c) = self.peek() else {
            return self.error("unclosed action".to_owned());
        };
        match c {
            c if is_space(c) => self.space(),
            '.' if self.rest().len() > 1
                && !self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) =>
            {
                self.next_char();
                self.field_or_variable(Type::Field)
            }
            '.' | '+' | '-' | '0'..='9' => self.number(),
            c if is_word(c) => self.word(),
            _ => {
                self.next_char();
                self.punctuation(c)
            }
        }
    }

    fn punctuation(&mut self, c: char) -> Token {
        match c {
            '=' => self.token(Type::Assign),
            ':' => {
                if self.next_char() == Some('=') {
                    self.token(Type::Declare)
                } else {
                    self.error("expected :=".to_owned())
                }
            }
            '|' => self.token(Type::Pipe),
            '"' => self.quoted('"', Type::String, "unterminated quoted string"),
            '\'' => self.quoted('\'', Type::CharConstant, "unterminated character constant"),
            '`' => {
                while let Some(c) = self.next_char() {
                    if c == '`' {
                        return self.token(Type::RawString);
                    }
                }
                self.error("unterminated raw quoted string".to_owned())
            }
            '$' => self.field_or_variable(Type::Variable),
            '(' => {
                self.parens += 1;
                self.token(Type::LeftParen)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren".to_owned()),
            ')' => {
                self.parens -= 1;
                self.token(Type::RightParen)
            }
            c if c.is_ascii_graphic() => self.token(Type::Char),
            c => self.error(format!(
                "unrecognized character in action: {}",
                shown(Some(c))
            )),
        }
    }

    fn quoted(&mut self, mark: char, of: Type, problem: &str) -> Token {
        loop {
            match self.next_char() {
                Some('\\') => {
                    if matches!(self.next_char(), None | Some('\n')) {
                        return self.error(problem.to_owned());
                    }
                }
                None | Some('\n') => return self.error(problem.to_owned()),
                Some(c) if c == mark => return self.token(of),
                Some(_) => {}
            }
        }
    }

    /// Spaces, of which the last belongs to a marker that trims.
    fn space(&mut self) -> Token {
        let rest = self.rest();
        let count = rest.len() - rest.trim_start_matches(is_space).len();
        let last = self.at + count - 1;
        let behind = &self.input[last..];
        let trims = has_right_trim(behind) && behind[TRIM..].starts_with(RIGHT);
        if trims {
            if count == 1 {
                return self.action();
            }
            self.skip_to(last);
        } else {
            self.skip_to(last + 1);
        }
        self.token(Type::Space)
    }

    /// Whether a word may end here.
    fn at_terminator(&self) -> bool {
        self.peek()
            .is_none_or(|c| is_space(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '('))
            || self.rest().starts_with(RIGHT)
    }

    fn bad_character(&mut self) -> Token {
        let c = self.peek();
        self.error(format!("bad character {}", shown(c)))
    }

    fn word(&mut self) -> Token {
        while self.peek().is_some_and(is_word) {
            self.next_char();
        }
        if !self.at_terminator() {
            return self.bad_character();
        }
        let word = &self.input[self.start..self.at];
        let of = match Type::keyword(word) {
            Some(of) => of,
            None if matches!(word, "true" | "false") => Type::Bool,
            None => Type::Identifier,
        };
        self.token(of)
    }

    fn field_or_variable(&mut self, of: Type) -> Token {
        if self.at_terminator() {
            return self.token(if of == Type::Variable { of } else { Type::Dot });
        }
        while self.peek().is_some_and(is_word) {
            self.next_char();
        }
        if !self.at_terminator() {
            return self.bad_character();
        }
        self.token(of)
    }

    fn number(&mut self) -> Token {
        let is_number = self.scan_number();
        if !is_number {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.input[..self.at].ends_with('i') {
                return self.bad_number();
            }
            return self.token(Type::Complex);
        }
        self.token(Type::Number)
    }

    fn bad_number(&mut self) -> Token {
        let text = &self.input[self.start..self.at];
        self.error(format!(
            "bad number syntax: {}",
            crate::quote::quote(text.as_bytes())
        ))
    }

    fn accept(&mut self, valid: &str) -> bool {
        let is_next = self.peek().is_some_and(|c| valid.contains(c));
        if is_next {
            self.next_char();
        }
        is_next
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_word) {
            self.next_char();
            return false;
        }
        true
    }
}

/// A character as `%#U` prints it; the end of the input is -1.
fn shown(c: Option<char>) -> String {
    match c {
        None => "U+FFFFFFFFFFFFFFFF".to_owned(),
        Some(c) if crate::quote::is_print(c) => format!("U+{:04X} '{c}'", u32::from(c)),
        Some(c) => format!("U+{:04X}", u32::from(c)),
    }
}
