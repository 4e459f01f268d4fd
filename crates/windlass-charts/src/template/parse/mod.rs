//! Tokens to templates.
//!
//! | module | what |
//! | --- | --- |
//! | `action` | what stands between delimiters: branches, ranges and blocks |
//! | `pipeline` | pipelines, commands and operands |

mod action;
mod pipeline;

use std::rc::Rc;

use super::lex::{Lexer, Token, Type};
use super::node::{Kind, Node, Source, Tree};

/// How deeply actions and parentheses may be nested.
const MAX_DEPTH: usize = 2000;

/// Reads a template and those defined within it; what is wrong is said as Go says it.
pub(crate) fn parse(
    name: &str,
    text: &str,
    is_function: &dyn Fn(&str) -> bool,
) -> Result<Vec<Tree>, String> {
    let source = Rc::new(Source {
        name: Rc::from(name),
        text: Rc::from(text),
    });
    let mut parser = Parser {
        lexer: Lexer::new(text),
        source,
        is_function,
        pending: Vec::new(),
        line: 0,
        variables: vec![Rc::from("$")],
        action_line: 0,
        ranges: 0,
        depth: 0,
        trees: Vec::new(),
    };
    parser.file(name)?;
    Ok(parser.trees)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    source: Rc<Source>,
    is_function: &'a dyn Fn(&str) -> bool,
    /// Tokens that were put back, the next one last.
    pending: Vec<Token>,
    /// The line of the token that was read last.
    line: usize,
    variables: Vec<Rc<str>>,
    /// Where the action began that is being read, 0 for none.
    action_line: usize,
    ranges: usize,
    depth: usize,
    trees: Vec<Tree>,
}

type Parsed<T> = Result<T, String>;

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Ending {
    End,
    Else,
}

impl Ending {
    fn shown(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

/// A node, or the end of a list of them.
enum Item {
    Node(Node),
    Ending(Ending, usize),
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        self.pending.pop().unwrap_or_else(|| {
            let token = self.lexer.next_token();
            self.line = token.line;
            token
        })
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.pending.push(token.clone());
        token
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.of != Type::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.pending.push(token.clone());
        token
    }

    fn fail<T>(&self, message: &str) -> Parsed<T> {
        Err(format!(
            "template: {}:{}: {message}",
            self.source.name, self.line
        ))
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        if token.of == Type::Error {
            let mut extra = String::new();
            if self.action_line != 0 && self.action_line != token.line {
                extra = format!(
                    " in action started at {}:{}",
                    self.source.name, self.action_line
                );
                if token.text.ends_with(" action") {
                    extra = extra.replacen(" in action", "", 1);
                }
            }
            return self.fail(&format!("{}{extra}", token.text));
        }
        self.fail(&format!("unexpected {} in {context}", token.shown()))
    }

    fn expect(&mut self, of: Type, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.of == of {
            Ok(token)
        } else {
            self.unexpected(&token, context)
        }
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail("max expression depth exceeded");
        }
        Ok(())
    }

    /// Adds a template, unless there is one of the name: the one that says something stays.
    fn add(&mut self, name: &str, nodes: Vec<Node>) -> Parsed<()> {
        let tree = Tree {
            name: Rc::from(name),
            source: Rc::clone(&self.source),
            nodes,
        };
        let Some(index) = self.trees.iter().position(|other| *other.name == *name) else {
            self.trees.push(tree);
            return Ok(());
        };
        if self.trees[index].is_empty() {
            self.trees[index] = tree;
        } else if !tree.is_empty() {
            let name = crate::quote::quote(name.as_bytes());
            return self.fail(&format!("template: multiple definition of template {name}"));
        }
        Ok(())
    }

    fn file(&mut self, name: &str) -> Parsed<()> {
        let mut nodes = Vec::new();
        loop {
            let token = self.peek();
            if token.of == Type::Eof {
                break;
            }
            if token.of == Type::LeftDelim {
                let delim = self.next();
                let word = self.next_non_space();
                if word.of == Type::Define {
                    self.definition()?;
                    continue;
                }
                self.pending.push(word);
                self.pending.push(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending, _) => {
                    return self.fail(&format!("unexpected {}", ending.shown()));
                }
            }
        }
        self.add(name, nodes)
    }

    fn unquoted(&self, token: &Token) -> Parsed<Vec<u8>> {
        match crate::quote::unquote(&token.text) {
            Some(bytes) => Ok(bytes),
            None => self.fail("invalid syntax"),
        }
    }

    /// The variables that a template of its own begins with, and those outside it.
    fn own_variables(&mut self) -> (Vec<Rc<str>>, usize) {
        let outer = std::mem::replace(&mut self.variables, vec![Rc::from("$")]);
        (outer, std::mem::take(&mut self.ranges))
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        if !matches!(token.of, Type::String | Type::RawString) {
            return self.unexpected(&token, CONTEXT);
        }
        let name = String::from_utf8_lossy(&self.unquoted(&token)?).into_owned();
        self.expect(Type::RightDelim, CONTEXT)?;
        let (outer, ranges) = self.own_variables();
        let (nodes, ending, _) = self.list()?;
        if ending != Ending::End {
            return self.fail(&format!("unexpected {} in {CONTEXT}", ending.shown()));
        }
        self.variables = outer;
        self.ranges = ranges;
        self.add(&name, nodes)
    }

    fn list(&mut self) -> Parsed<(Vec<Node>, Ending, usize)> {
        self.deeper()?;
        let mut nodes = Vec::new();
        while self.peek_non_space().of != Type::Eof {
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Ending(ending, at) => {
                    self.depth -= 1;
                    return Ok((nodes, ending, at));
                }
            }
        }
        self.fail("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        match token.of {
            Type::Text => Ok(Item::Node(Node {
                at: token.at,
                kind: Kind::Text(Rc::from(token.text)),
            })),
            Type::LeftDelim => {
                self.action_line = token.line;
                let item = self.action()?;
                self.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }
}
