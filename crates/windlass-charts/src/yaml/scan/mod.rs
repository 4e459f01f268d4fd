//! Text to tokens.
//!
//! A key of a mapping is only known to be one when its colon is met. So the scanner remembers where
//! a key may have begun (a *simple key*), and inserts the tokens for the mapping and the key there
//! once the colon comes.
//!
//! | module | what |
//! | --- | --- |
//! | `fetch` | which token comes next, simple keys and indentation |
//! | `property` | directives, anchors and tags |
//! | `scalar` | plain, quoted and block scalars |

mod fetch;
mod property;
mod scalar;

use std::collections::VecDeque;

/// How deeply collections may be nested.
pub(crate) const MAX_DEPTH: usize = 100;

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
}
