//! Tokens to nodes: the grammar of YAML.

use std::collections::HashMap;
use std::rc::Rc;

use super::scan::{MAX_DEPTH, Mark, ScanError, Scanner, Style, Token};

/// The prefix of the tags that YAML itself defines.
const CORE: &str = "tag:yaml.org,2002:";

#[derive(Debug)]
pub(crate) enum Kind {
    Scalar {
        value: String,
        /// Whether the scalar is plain, so that its text says what it is.
        implicit: bool,
    },
    Sequence(Vec<Rc<Node>>),
    Mapping(Vec<(Rc<Node>, Rc<Node>)>),
    /// What an alias stands for.
    Alias(Rc<Node>),
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Its tag, written out; empty for none.
    pub(crate) tag: String,
}

type Composed<T> = Result<T, ScanError>;

/// The first document of a text, or nothing if there is none.
pub(crate) fn compose(text: &[u8]) -> Composed<Option<Rc<Node>>> {
    let mut composer = Composer {
        scanner: Scanner::new(text)?,
        handles: HashMap::new(),
        anchors: HashMap::new(),
        depth: 0,
    };
    composer.document()
}

struct Composer {
    scanner: Scanner,
    handles: HashMap<String, String>,
    anchors: HashMap<String, Option<Rc<Node>>>,
    depth: usize,
}

fn fail<T>(problem: &str, context: Mark, at: Mark) -> Composed<T> {
    Err(ScanError {
        problem: problem.to_owned(),
        line: if at.line == 0 { context.line } else { at.line },
    })
}

impl Composer {
    fn is_next(&mut self, tokens: &[Token]) -> Composed<bool> {
        Ok(tokens.contains(&self.scanner.peek()?.0))
    }

    fn document(&mut self) -> Composed<Option<Rc<Node>>> {
        loop {
            let (token, mark) = self.scanner.peek()?.clone();
            match token {
                Token::Directive(directive) => {
                    self.scanner.next()?;
                    if let Some((handle, prefix)) = directive
                        && self.handles.insert(handle, prefix).is_some()
                    {
                        return fail("found duplicate %TAG directive", mark, mark);
                    }
                    if !matches!(
                        self.scanner.peek()?.0,
                        Token::Directive(_) | Token::DocumentStart
                    ) {
                        let at = self.scanner.peek()?.1;
                        return fail("did not find expected <document start>", at, at);
                    }
                }
                Token::DocumentStart => {
                    self.scanner.next()?;
                    break;
                }
                Token::StreamEnd => return Ok(None),
                _ => break,
            }
        }
        let is_empty = matches!(
            self.scanner.peek()?.0,
            Token::Directive(_) | Token::DocumentStart | Token::DocumentEnd | Token::StreamEnd
        );
        let node = if is_empty {
            empty()
        } else {
            self.node(true, false)?
        };
        // What follows is read so far as to know that the document ends here.
        self.scanner.peek()?;
        Ok(Some(node))
    }

    fn node(&mut self, block: bool, indentless: bool) -> Composed<Rc<Node>> {
        let (token, start) = self.scanner.peek()?.clone();
        if let Token::Alias(name) = token {
            self.scanner.next()?;
            return match self.anchors.get(&name) {
                Some(Some(node)) => Ok(Rc::new(Node {
                    kind: Kind::Alias(Rc::clone(node)),
                    tag: String::new(),
                })),
                Some(None) => Err(ScanError {
                    problem: format!("anchor '{name}' value contains itself"),
                    line: 0,
                }),
                None => Err(ScanError {
                    problem: format!("unknown anchor '{name}' referenced"),
                    line: 0,
                }),
            };
        }
        let mut anchor = None;
        let mut tag = None;
        loop {
            let (token, mark) = self.scanner.peek()?.clone();
            match token {
                Token::Anchor(name) if anchor.is_none() => anchor = Some(name),
                Token::Tag(handle, suffix) if tag.is_none() => {
                    tag = Some(self.resolve_tag(&handle, &suffix, start, mark)?);
                }
                _ => break,
            }
            self.scanner.next()?;
        }
        if let Some(name) = &anchor {
            self.anchors.insert(name.clone(), None);
        }
        self.depth += 1;
        let kind = self.content(block, indentless, anchor.is_some(), tag.as_deref(), start);
        self.depth -= 1;
        // A tag that says no more than that the text is no plain one.
        let tag = tag.filter(|tag| tag != "!").unwrap_or_default();
        let node = Rc::new(Node { kind: kind?, tag });
        if let Some(name) = anchor {
            self.anchors.insert(name, Some(Rc::clone(&node)));
        }
        Ok(node)
    }

    fn resolve_tag(&self, handle: &str, suffix: &str, start: Mark, mark: Mark) -> Composed<String> {
        if handle.is_empty() {
            return Ok(suffix.to_owned());
        }
        let prefix = match (self.handles.get(handle), handle) {
            (Some(prefix), _) => prefix,
            (None, "!") => "!",
            (None, "!!") => CORE,
            _ => return fail("found undefined tag handle", start, mark),
        };
        Ok(format!("{prefix}{suffix}"))
    }

    fn content(
        &mut self,
        block: bool,
        indentless: bool,
        is_anchored: bool,
        tag: Option<&str>,
        start: Mark,
    ) -> Composed<Kind> {
        let (token, mark) = self.scanner.peek()?.clone();
        if self.depth > 2 * MAX_DEPTH {
            return fail("exceeded max depth", start, mark);
        }
        match token {
            Token::BlockEntry if indentless => self.indentless_sequence(),
            Token::Scalar(value, style) => {
                self.scanner.next()?;
                let implicit = match tag {
                    None => style == Style::Plain,
                    Some(tag) => tag == "!",
                };
                Ok(Kind::Scalar { value, implicit })
            }
            Token::FlowSequenceStart => self.flow_sequence(),
            Token::FlowMappingStart => self.flow_mapping(),
            Token::BlockSequenceStart if block => self.block_sequence(),
            Token::BlockMappingStart if block => self.block_mapping(),
            _ if is_anchored || tag.is_some() => Ok(Kind::Scalar {
                value: String::new(),
                implicit: tag.is_none(),
            }),
            _ => fail("did not find expected node content", start, mark),
        }
    }

    fn block_sequence(&mut self) -> Composed<Kind> {
        let (_, start) = self.scanner.next()?;
        let mut items = Vec::new();
        loop {
            let (token, mark) = self.scanner.next()?;
            match token {
                Token::BlockEntry => {
                    let is_empty = self.is_next(&[Token::BlockEntry, Token::BlockEnd])?;
                    items.push(if is_empty {
                        empty()
                    } else {
                        self.node(true, false)?
                    });
                }
                Token::BlockEnd => return Ok(Kind::Sequence(items)),
                _ => return fail("did not find expected '-' indicator", start, mark),
            }
        }
    }

    fn indentless_sequence(&mut self) -> Composed<Kind> {
        let mut items = Vec::new();
        while self.is_next(&[Token::BlockEntry])? {
            self.scanner.next()?;
            let is_empty =
                self.is_next(&[Token::BlockEntry, Token::Key, Token::Value, Token::BlockEnd])?;
            items.push(if is_empty {
                empty()
            } else {
                self.node(true, false)?
            });
        }
        Ok(Kind::Sequence(items))
    }

    /// A part of a block mapping, which is empty if the mapping goes on.
    fn block_part(&mut self) -> Composed<Rc<Node>> {
        self.scanner.next()?;
        if self.is_next(&[Token::Key, Token::Value, Token::BlockEnd])? {
            Ok(empty())
        } else {
            self.node(true, true)
        }
    }

    fn block_mapping(&mut self) -> Composed<Kind> {
        let (_, start) = self.scanner.next()?;
        let mut entries = Vec::new();
        loop {
            let (token, mark) = self.scanner.peek()?.clone();
            match token {
                Token::Key => {
                    let key = self.block_part()?;
                    let value = if self.is_next(&[Token::Value])? {
                        self.block_part()?
                    } else {
                        empty()
                    };
                    entries.push((key, value));
                }
                Token::BlockEnd => {
                    self.scanner.next()?;
                    return Ok(Kind::Mapping(entries));
                }
                _ => return fail("did not find expected key", start, mark),
            }
        }
    }

    /// A part of a flow collection, which is empty if one of the tokens follows.
    fn flow_part(&mut self, ends: &[Token]) -> Composed<Rc<Node>> {
        if self.is_next(ends)? {
            Ok(empty())
        } else {
            self.node(false, false)
        }
    }

    fn flow_sequence(&mut self) -> Composed<Kind> {
        let (_, start) = self.scanner.next()?;
        let mut items = Vec::new();
        loop {
            if self.is_next(&[Token::FlowSequenceEnd])? {
                break;
            }
            if !items.is_empty() {
                let (token, mark) = self.scanner.next()?;
                if token != Token::FlowEntry {
                    return fail("did not find expected ',' or ']'", start, mark);
                }
                if self.is_next(&[Token::FlowSequenceEnd])? {
                    break;
                }
            }
            if self.is_next(&[Token::Key])? {
                self.scanner.next()?;
                let ends = [Token::Value, Token::FlowEntry, Token::FlowSequenceEnd];
                let key = self.flow_part(&ends)?;
                let value = self.flow_value(&[Token::FlowEntry, Token::FlowSequenceEnd])?;
                items.push(Rc::new(Node {
                    kind: Kind::Mapping(vec![(key, value)]),
                    tag: String::new(),
                }));
            } else {
                items.push(self.node(false, false)?);
            }
        }
        self.scanner.next()?;
        Ok(Kind::Sequence(items))
    }

    fn flow_value(&mut self, ends: &[Token]) -> Composed<Rc<Node>> {
        if self.is_next(&[Token::Value])? {
            self.scanner.next()?;
            self.flow_part(ends)
        } else {
            Ok(empty())
        }
    }

    fn flow_mapping(&mut self) -> Composed<Kind> {
        let (_, start) = self.scanner.next()?;
        let mut entries = Vec::new();
        let ends = [Token::FlowEntry, Token::FlowMappingEnd];
        loop {
            if self.is_next(&[Token::FlowMappingEnd])? {
                break;
            }
            if !entries.is_empty() {
                let (token, mark) = self.scanner.next()?;
                if token != Token::FlowEntry {
                    return fail("did not find expected ',' or '}'", start, mark);
                }
                if self.is_next(&[Token::FlowMappingEnd])? {
                    break;
                }
            }
            if self.is_next(&[Token::Key])? {
                self.scanner.next()?;
                let key_ends = [Token::Value, Token::FlowEntry, Token::FlowMappingEnd];
                let key = self.flow_part(&key_ends)?;
                let value = self.flow_value(&ends)?;
                entries.push((key, value));
            } else {
                entries.push((self.node(false, false)?, empty()));
            }
        }
        self.scanner.next()?;
        Ok(Kind::Mapping(entries))
    }
}

/// The scalar where nothing is written.
fn empty() -> Rc<Node> {
    Rc::new(Node {
        kind: Kind::Scalar {
            value: String::new(),
            implicit: true,
        },
        tag: String::new(),
    })
}
