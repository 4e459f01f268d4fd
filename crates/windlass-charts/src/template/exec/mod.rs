//! Executes templates.
//!
//! A value that comes out of a map or a list of anything is one whose type Go only sees as
//! `interface {}` until it is looked at; some errors say so, and so every operand remembers it.
//!
//! | module | what |
//! | --- | --- |
//! | `control` | text, branches, ranges and templates within templates |
//! | `pipeline` | pipelines, commands, constants and arguments |
//! | `field` | fields and variables |
//! | `call` | functions and methods |

mod call;
mod control;
mod field;
mod pipeline;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::env::Env;
use super::error::Error;
use super::node::{Command, Node, Pipe, Tree};
use super::value::Value;

/// The templates that can be named, by name.
pub(crate) type Templates = BTreeMap<Rc<str>, Rc<Tree>>;

/// A value and whether its type is only known as an interface.
#[derive(Clone)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    interface: bool,
}

impl Operand {
    pub(crate) fn concrete(value: Value) -> Self {
        Self {
            value,
            interface: false,
        }
    }

    fn interface(value: Value) -> Self {
        Self {
            value,
            interface: true,
        }
    }

    fn type_name(&self) -> String {
        if self.interface {
            "interface {}".to_owned()
        } else {
            self.value.type_name().into_owned()
        }
    }
}

/// How a part of a template ended.
#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// What an error is about.
#[derive(Clone, Copy)]
enum At<'t> {
    Nothing,
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
}

impl At<'_> {
    /// Where its text begins.
    fn place(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Node(node) => node.at,
            Self::Pipe(pipe) => pipe.at,
            Self::Command(command) => command.at,
        }
    }
}

type Executed<T> = Result<T, Error>;

/// Executes the template of a name.
pub(crate) fn execute(
    env: &Env,
    templates: &Rc<Templates>,
    name: &str,
    data: Value,
) -> Executed<Vec<u8>> {
    let Some(tree) = templates.get(name) else {
        return Err(Error::plain(format!(
            "template: no template {} associated with template \"gotpl\"",
            crate::quote::quote(name.as_bytes())
        )));
    };
    let tree = Rc::clone(tree);
    env.enter()?;
    let mut state = State {
        env,
        templates,
        tree: &tree,
        at: At::Nothing,
        variables: vec![(Rc::from("$"), Operand::concrete(data.clone().concrete()))],
        out: Vec::new(),
    };
    let dot = Operand::concrete(data.concrete());
    let walked = state.list(&dot, &tree.nodes);
    let out = std::mem::take(&mut state.out);
    env.leave();
    walked.map(|_| out)
}

struct State<'t> {
    env: &'t Env,
    templates: &'t Rc<Templates>,
    tree: &'t Tree,
    at: At<'t>,
    variables: Vec<(Rc<str>, Operand)>,
    out: Vec<u8>,
}

impl State<'_> {
    /// How a message about the present place begins.
    fn place(&self) -> String {
        let (at, context) = match self.at {
            At::Nothing => return format!("template: {}: ", self.tree.name),
            At::Node(node) => (node.at, node.kind.to_string()),
            At::Pipe(pipe) => (pipe.at, pipe.to_string()),
            At::Command(command) => (command.at, command.to_string()),
        };
        format!(
            "template: {}: executing {} at <{context}>: ",
            self.tree.source.location(at),
            crate::quote::quote(self.tree.name.as_bytes())
        )
    }

    fn fail<T>(&self, message: &str) -> Executed<T> {
        Err(Error::located(format!("{}{message}", self.place())))
    }
}
