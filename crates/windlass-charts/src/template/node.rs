//! What a template is made of once it is parsed, and how errors show it.

use std::fmt;
use std::rc::Rc;

use super::value::Value;

/// A node of a template and where its text begins.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Text(Rc<str>),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { name: String, pipe: Option<Pipe> },
    Break,
    Continue,
    // What follows are words of a command.
    Pipe(Pipe),
    Identifier(Rc<str>),
    Variable(Vec<Rc<str>>),
    Dot,
    Nil,
    Field(Vec<Rc<str>>),
    Chain(Box<Node>, Vec<Rc<str>>),
    Bool(bool),
    Number(Number),
    Str { quoted: String, value: Value },
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Number {
    pub(crate) text: String,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: bool,
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) list: Vec<Node>,
    pub(crate) otherwise: Option<Vec<Node>>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) at: usize,
    pub(crate) assigns: bool,
    pub(crate) variables: Vec<Rc<str>>,
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) at: usize,
    pub(crate) words: Vec<Node>,
}

/// A template by name, and the text it stands in.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) name: Rc<str>,
    /// The file or text that it was defined in.
    pub(crate) source: Rc<Source>,
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: Rc<str>,
    pub(crate) text: Rc<str>,
}

impl Source {
    /// Where a place of the text is: name, line and byte.
    pub(crate) fn location(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let byte = match before.rfind('\n') {
            Some(newline) => at - newline - 1,
            None => at,
        };
        let line = 1 + before.matches('\n').count();
        format!("{}:{line}:{byte}", self.name)
    }
}

impl Source {
    /// The line that a place of the text is on, without blanks around it.
    pub(crate) fn line(&self, at: usize) -> &str {
        let at = at.min(self.text.len());
        let Some((before, after)) = self.text.split_at_checked(at) else {
            return "";
        };
        let from = before.rfind('\n').map_or(0, |newline| newline + 1);
        let to = at + after.find('\n').unwrap_or(after.len());
        self.text[from..to].trim()
    }
}

impl Tree {
    /// Whether there is nothing in it but blanks.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| match &node.kind {
            Kind::Text(text) => text.trim().is_empty(),
            _ => false,
        })
    }
}

fn join(f: &mut fmt::Formatter<'_>, words: &[Rc<str>], prefix: &str) -> fmt::Result {
    for (index, word) in words.iter().enumerate() {
        let between = if index == 0 { prefix } else { "." };
        write!(f, "{between}{word}")?;
    }
    Ok(())
}

fn list(f: &mut fmt::Formatter<'_>, nodes: &[Node]) -> fmt::Result {
    nodes.iter().try_for_each(|node| write!(f, "{}", node.kind))
}

fn branch(f: &mut fmt::Formatter<'_>, name: &str, branch: &Branch) -> fmt::Result {
    write!(f, "{{{{{name} {}}}}}", branch.pipe)?;
    list(f, &branch.list)?;
    if let Some(otherwise) = &branch.otherwise {
        f.write_str("{{else}}")?;
        list(f, otherwise)?;
    }
    f.write_str("{{end}}")
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Action(pipe) => write!(f, "{{{{{pipe}}}}}"),
            Self::If(inner) => branch(f, "if", inner),
            Self::With(inner) => branch(f, "with", inner),
            Self::Range(inner) => branch(f, "range", inner),
            Self::Template { name, pipe } => {
                write!(f, "{{{{template {}", crate::quote::quote(name.as_bytes()))?;
                if let Some(pipe) = pipe {
                    write!(f, " {pipe}")?;
                }
                f.write_str("}}")
            }
            Self::Break => f.write_str("{{break}}"),
            Self::Continue => f.write_str("{{continue}}"),
            Self::Pipe(pipe) => write!(f, "{pipe}"),
            Self::Identifier(name) => f.write_str(name),
            Self::Variable(words) => join(f, words, ""),
            Self::Dot => f.write_str("."),
            Self::Nil => f.write_str("nil"),
            Self::Field(words) => join(f, words, "."),
            Self::Chain(node, words) => {
                match &node.kind {
                    Self::Pipe(pipe) => write!(f, "({pipe})")?,
                    other => write!(f, "{other}")?,
                }
                join(f, words, ".")
            }
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => f.write_str(&number.text),
            Self::Str { quoted, .. } => f.write_str(quoted),
        }
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, variable) in self.variables.iter().enumerate() {
            write!(f, "{}{variable}", if index == 0 { "" } else { ", " })?;
        }
        if !self.variables.is_empty() {
            f.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            write!(f, "{}{command}", if index == 0 { "" } else { " | " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { " " })?;
            match &word.kind {
                Kind::Pipe(pipe) => write!(f, "({pipe})")?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}
