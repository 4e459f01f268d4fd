//! Executes templates.
//!
//! A value that comes out of a map or a list of anything is one whose type Go only sees as
//! `interface {}` until it is looked at; some errors say so, and so every operand remembers it.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::env::Env;
use super::error::Error;
use super::method;
use super::node::{Branch, Command, Kind, Node, Number, Pipe, Tree};
use super::print;
use super::value::{ListType, MapType, Value};
use crate::functions::{self, Function, Type};

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

impl<'t> State<'t> {
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

    fn list(&mut self, dot: &Operand, nodes: &'t [Node]) -> Executed<Flow> {
        for node in nodes {
            let flow = self.walk(dot, node)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn walk(&mut self, dot: &Operand, node: &'t Node) -> Executed<Flow> {
        self.env.step(1)?;
        self.at = At::Node(node);
        match &node.kind {
            Kind::Text(text) => self.write(text.as_bytes())?,
            Kind::Action(pipe) => {
                let value = self.pipeline(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at = At::Node(node);
                    match &value.value {
                        Value::Str(bytes) => self.write(bytes)?,
                        other => {
                            let mut text = Vec::new();
                            print::action(other, &mut text);
                            self.write(&text)?;
                        }
                    }
                }
            }
            Kind::If(branch) => return self.branch(dot, branch, false),
            Kind::With(branch) => return self.branch(dot, branch, true),
            Kind::Range(branch) => return self.range(dot, branch, node),
            Kind::Template { name, pipe } => self.template(dot, node, name, pipe.as_ref())?,
            Kind::Break => return Ok(Flow::Break),
            Kind::Continue => return Ok(Flow::Continue),
            other => return self.fail(&format!("unknown node: {other}")),
        }
        Ok(Flow::On)
    }

    fn write(&mut self, bytes: &[u8]) -> Executed<()> {
        self.env.wrote(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn branch(&mut self, dot: &Operand, branch: &'t Branch, is_with: bool) -> Executed<Flow> {
        let mark = self.variables.len();
        let value = self.pipeline(dot, &branch.pipe)?;
        let flow = if value.value.truth() {
            self.list(if is_with { &value } else { dot }, &branch.list)?
        } else if let Some(otherwise) = &branch.otherwise {
            self.list(dot, otherwise)?
        } else {
            Flow::On
        };
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, dot: &Operand, branch: &'t Branch, node: &'t Node) -> Executed<Flow> {
        self.at = At::Node(node);
        let outer = self.variables.len();
        let value = self.pipeline(dot, &branch.pipe)?.value;
        let mut ran = false;
        match &value {
            Value::Int(count) | Value::Int64(count) => {
                let count = *count;
                if branch.pipe.variables.len() > 1 {
                    return self.fail(&format!(
                        "can't use {count} to iterate over more than one variable"
                    ));
                }
                let make: fn(i64) -> Value = if matches!(value, Value::Int(_)) {
                    Value::Int
                } else {
                    Value::Int64
                };
                for index in 0..count {
                    ran = true;
                    let element = Operand::concrete(make(index));
                    if !self.iteration(branch, &Value::Invalid, element)? {
                        break;
                    }
                }
            }
            Value::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    ran = true;
                    let element = Operand {
                        value: item.clone(),
                        interface: list.of == ListType::Any,
                    };
                    if !self.iteration(branch, &int(index), element)? {
                        break;
                    }
                }
            }
            Value::Bytes(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    ran = true;
                    let element = Operand::concrete(Value::Byte(*byte));
                    if !self.iteration(branch, &int(index), element)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                let interface = matches!(map.of, MapType::Any | MapType::Values);
                for (key, value) in map.snapshot() {
                    ran = true;
                    let key = Value::str(key.as_bytes());
                    if !self.iteration(branch, &key, Operand { value, interface })? {
                        break;
                    }
                }
            }
            Value::Invalid | Value::Nil => {}
            other => {
                let shown = print::shown(other);
                return self.fail(&format!("range can't iterate over {shown}"));
            }
        }
        let mut flow = Flow::On;
        if !ran && let Some(otherwise) = &branch.otherwise {
            flow = self.list(dot, otherwise)?;
        }
        self.variables.truncate(outer);
        Ok(flow)
    }

    /// One round of a range; whether another may follow.
    fn iteration(&mut self, branch: &'t Branch, index: &Value, element: Operand) -> Executed<bool> {
        self.env.step(1)?;
        let mark = self.variables.len();
        let names = &branch.pipe.variables;
        if branch.pipe.assigns {
            match names.as_slice() {
                [first, second, ..] => {
                    self.set(first, Operand::concrete(index.clone()))?;
                    self.set(second, element.clone())?;
                }
                [only] => self.set(only, element.clone())?,
                [] => {}
            }
        } else {
            let depth = self.variables.len();
            if !names.is_empty() {
                self.variables[depth - 1].1 = element.clone();
            }
            if names.len() > 1 {
                self.variables[depth - 2].1 = Operand::concrete(index.clone());
            }
        }
        let flow = self.list(&element, &branch.list)?;
        self.variables.truncate(mark);
        Ok(flow != Flow::Break)
    }

    fn template(
        &mut self,
        dot: &Operand,
        node: &'t Node,
        name: &str,
        pipe: Option<&'t Pipe>,
    ) -> Executed<()> {
        self.at = At::Node(node);
        let Some(tree) = self.templates.get(name) else {
            let name = crate::quote::quote(name.as_bytes());
            return self.fail(&format!("template {name} not defined"));
        };
        let dot = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Operand::concrete(Value::Invalid),
        };
        self.env.enter()?;
        let mut inner = State {
            env: self.env,
            templates: self.templates,
            tree,
            at: At::Nothing,
            variables: vec![(Rc::from("$"), dot.clone())],
            out: std::mem::take(&mut self.out),
        };
        let walked = inner.list(&dot, &tree.nodes);
        self.out = std::mem::take(&mut inner.out);
        self.env.leave();
        walked.map(|_| ())
    }

    fn set(&mut self, name: &str, value: Operand) -> Executed<()> {
        match (self.variables.iter_mut().rev()).find(|(other, _)| **other == *name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => self.fail(&format!("undefined variable: {name}")),
        }
    }

    fn pipeline(&mut self, dot: &Operand, pipe: &'t Pipe) -> Executed<Operand> {
        self.env.step(1)?;
        self.at = At::Pipe(pipe);
        let mut value = None;
        for command in &pipe.commands {
            let result = self.command(dot, command, value.take())?;
            // What an interface holds is what counts from here on.
            value = Some(Operand::concrete(result.value.concrete()));
        }
        let value = value.unwrap_or_else(|| Operand::concrete(Value::Invalid));
        for name in &pipe.variables {
            if pipe.assigns {
                self.set(name, value.clone())?;
            } else {
                self.variables.push((Rc::clone(name), value.clone()));
            }
        }
        Ok(value)
    }

    /// Refuses arguments of what takes none.
    fn not_a_function(&self, words: &'t [Node], last: Option<&Operand>) -> Executed<()> {
        if words.len() > 1 || last.is_some() {
            let word = words.first().map(|word| word.kind.to_string());
            return self.fail(&format!(
                "can't give argument to non-function {}",
                word.unwrap_or_default()
            ));
        }
        Ok(())
    }

    fn command(
        &mut self,
        dot: &Operand,
        command: &'t Command,
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let words = command.words.as_slice();
        let Some(first) = words.first() else {
            return self.fail("empty command");
        };
        match &first.kind {
            Kind::Field(names) => self.field(dot, first, names, words, last),
            Kind::Chain(inner, names) => self.chain(dot, first, inner, names, words, last),
            Kind::Identifier(name) => {
                self.at = At::Node(first);
                self.function(dot, name, At::Command(command), &words[1..], last)
            }
            Kind::Pipe(pipe) => {
                self.not_a_function(words, last.as_ref())?;
                self.pipeline(dot, pipe)
            }
            Kind::Variable(names) => self.variable(dot, first, names, words, last),
            other => {
                self.at = At::Node(first);
                self.not_a_function(words, last.as_ref())?;
                match other {
                    Kind::Bool(value) => Ok(Operand::concrete(Value::Bool(*value))),
                    Kind::Dot => Ok(dot.clone()),
                    Kind::Nil => self.fail("nil is not a command"),
                    Kind::Number(number) => self.constant(number).map(Operand::concrete),
                    Kind::Str { value, .. } => Ok(Operand::concrete(value.clone())),
                    other => {
                        let shown = crate::quote::quote(other.to_string().as_bytes());
                        self.fail(&format!("can't evaluate command {shown}"))
                    }
                }
            }
        }
    }

    /// The value of a constant where nothing says of which type it is.
    fn constant(&self, number: &Number) -> Executed<Value> {
        let text = number.text.as_str();
        let is_hex = text.len() > 2
            && (text.starts_with("0x") || text.starts_with("0X"))
            && !text.contains(['p', 'P']);
        let looks_like_float =
            !is_hex && !text.starts_with('\'') && text.contains(['.', 'e', 'E', 'p', 'P']);
        match (number.float, number.int) {
            _ if number.complex => self.fail("complex numbers are not supported"),
            (Some(float), _) if looks_like_float => Ok(Value::Float(float)),
            (_, Some(int)) => Ok(Value::Int(int)),
            _ => self.fail(&format!("{text} overflows int")),
        }
    }

    fn field(
        &mut self,
        dot: &Operand,
        node: &'t Node,
        names: &'t [Rc<str>],
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        self.at = At::Node(node);
        self.field_chain(dot, dot.clone(), node, names, words, last)
    }

    fn chain(
        &mut self,
        dot: &Operand,
        node: &'t Node,
        inner: &'t Node,
        names: &'t [Rc<str>],
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        self.at = At::Node(node);
        if matches!(inner.kind, Kind::Nil) {
            return self.fail(&format!(
                "indirection through explicit nil in {}",
                node.kind
            ));
        }
        let receiver = self.argument(dot, None, inner)?;
        self.field_chain(dot, receiver, node, names, words, last)
    }

    fn variable(
        &mut self,
        dot: &Operand,
        node: &'t Node,
        names: &'t [Rc<str>],
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        self.at = At::Node(node);
        let Some((first, rest)) = names.split_first() else {
            return self.fail("undefined variable: ");
        };
        let found = (self.variables.iter().rev())
            .find(|(name, _)| name == first)
            .map(|(_, value)| value.clone());
        let Some(value) = found else {
            return self.fail(&format!("undefined variable: {first}"));
        };
        if rest.is_empty() {
            self.not_a_function(words, last.as_ref())?;
            return Ok(value);
        }
        self.field_chain(dot, value, node, rest, words, last)
    }

    fn field_chain(
        &mut self,
        dot: &Operand,
        mut receiver: Operand,
        node: &'t Node,
        names: &'t [Rc<str>],
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let Some((final_name, first_names)) = names.split_last() else {
            return Ok(receiver);
        };
        for name in first_names {
            receiver = self.evaluate_field(dot, name, node, &[], None, receiver)?;
        }
        self.evaluate_field(dot, final_name, node, words, last, receiver)
    }

    fn evaluate_field(
        &mut self,
        dot: &Operand,
        name: &Rc<str>,
        node: &'t Node,
        words: &'t [Node],
        last: Option<Operand>,
        receiver: Operand,
    ) -> Executed<Operand> {
        if matches!(receiver.value, Value::Invalid) {
            if self.env.strict {
                let name = crate::quote::quote(name.as_bytes());
                return self.fail(&format!("nil data; no entry for key {name}"));
            }
            return Ok(Operand::concrete(Value::Invalid));
        }
        if matches!(receiver.value, Value::Nil) {
            return self.fail(&format!("nil pointer evaluating interface {{}}.{name}"));
        }
        let arguments = words.get(1..).unwrap_or_default();
        if let Some(method) = method::find(&receiver.value, name) {
            let call = At::Node(node);
            return self.call(
                dot,
                method,
                Some(receiver.value),
                name,
                call,
                arguments,
                last,
            );
        }
        let has_arguments = !arguments.is_empty() || last.is_some();
        match &receiver.value {
            Value::Map(map) => {
                if has_arguments {
                    return self.fail(&format!("{name} is not a method but has arguments"));
                }
                let interface = matches!(map.of, MapType::Any | MapType::Values);
                match map.get(name) {
                    Some(value) => Ok(Operand { value, interface }),
                    None if self.env.strict => {
                        let name = crate::quote::quote(name.as_bytes());
                        self.fail(&format!("map has no entry for key {name}"))
                    }
                    None => Ok(Operand {
                        value: map.zero(),
                        interface,
                    }),
                }
            }
            Value::Object(object) if let Some(value) = object.field(name) => {
                if has_arguments {
                    return self.fail(&format!(
                        "{name} has arguments but cannot be invoked as function"
                    ));
                }
                Ok(Operand::concrete(value))
            }
            _ => {
                let of = receiver.type_name();
                self.fail(&format!("can't evaluate field {name} in type {of}"))
            }
        }
    }

    fn function(
        &mut self,
        dot: &Operand,
        name: &Rc<str>,
        call: At<'t>,
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let Some(function) = functions::find(name) else {
            let name = crate::quote::quote(name.as_bytes());
            return self.fail(&format!("{name} is not a defined function"));
        };
        if matches!(&**name, "and" | "or") {
            return self.shortcut(dot, name, words, last);
        }
        if let ("call", Some(callee)) = (&**name, words.first()) {
            let value = self.argument(dot, Some(Type::Value), callee)?.value;
            self.at = call;
            let problem = if value.is_nil() {
                "call of nil".to_owned()
            } else {
                format!("non-function {} of type {}", callee.kind, value.type_name())
            };
            let prefix = format!("{}error calling call: ", self.place());
            return Err(Error::plain(problem).within(prefix, true));
        }
        self.call(dot, function, None, name, call, words, last)
    }

    /// `and` and `or`, which evaluate no more than they need.
    fn shortcut(
        &mut self,
        dot: &Operand,
        name: &str,
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        if words.is_empty() && last.is_none() {
            return self.fail(&format!(
                "wrong number of args for {name}: want at least 1 got 0"
            ));
        }
        let mut value = Operand::concrete(Value::Invalid);
        for word in words {
            value = self.argument(dot, Some(Type::Value), word)?;
            if value.value.truth() == (name == "or") {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    #[expect(clippy::too_many_arguments, reason = "all of a call")]
    fn call(
        &mut self,
        dot: &Operand,
        function: &Function,
        receiver: Option<Value>,
        name: &str,
        call: At<'t>,
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let count = words.len() + usize::from(last.is_some());
        let fixed = function.params.len();
        match function.variadic {
            Some(_) if count < fixed => {
                return self.fail(&format!(
                    "wrong number of args for {name}: want at least {fixed} got {}",
                    words.len()
                ));
            }
            None if count != fixed => {
                return self.fail(&format!(
                    "wrong number of args for {name}: want {fixed} got {count}"
                ));
            }
            _ => {}
        }
        let param = |index: usize| function.params.get(index).copied().or(function.variadic);
        let mut args = Vec::with_capacity(count + 1);
        args.extend(receiver);
        for (index, word) in words.iter().enumerate() {
            args.push(self.argument(dot, param(index), word)?.value);
        }
        if let Some(last) = last {
            args.push(self.check(last, param(words.len()))?.value);
        }
        self.env.step(1)?;
        let context = functions::Context {
            env: self.env,
            templates: self.templates,
        };
        match (function.run)(&context, &args) {
            Ok(value) => {
                self.env.step(1 + size(&value) / 32)?;
                // A function that gives anything gives an interface.
                Ok(Operand::interface(value))
            }
            Err(error) if error.limit => Err(error),
            Err(error) => {
                self.at = call;
                Err(error.within(format!("{}error calling {name}: ", self.place()), true))
            }
        }
    }

    /// Checks that a value fits where it goes.
    fn check(&self, operand: Operand, of: Option<Type>) -> Executed<Operand> {
        let Some(of) = of else {
            return Ok(operand);
        };
        let value = &operand.value;
        if matches!(value, Value::Invalid) {
            return if of.can_be_nil() {
                let nil = if of == Type::Value {
                    Value::Invalid
                } else {
                    Value::Nil
                };
                Ok(Operand::concrete(nil))
            } else {
                self.fail(&format!("invalid value; expected {}", of.name()))
            };
        }
        if of.accepts(value) {
            return Ok(operand);
        }
        self.fail(&format!(
            "wrong type for value; expected {}; got {}",
            of.name(),
            value.type_name()
        ))
    }

    fn argument(&mut self, dot: &Operand, of: Option<Type>, word: &'t Node) -> Executed<Operand> {
        self.env.step(1)?;
        self.at = At::Node(word);
        let operand = match &word.kind {
            Kind::Dot => dot.clone(),
            Kind::Nil => {
                let Some(of) = of.filter(|of| of.can_be_nil()) else {
                    let name = of.map_or("nil", Type::name);
                    return self.fail(&format!("cannot assign nil to {name}"));
                };
                let nil = if of == Type::Value {
                    Value::Invalid
                } else {
                    Value::Nil
                };
                return Ok(Operand::concrete(nil));
            }
            Kind::Field(names) => self.field(dot, word, names, &[], None)?,
            Kind::Variable(names) => self.variable(dot, word, names, &[], None)?,
            Kind::Pipe(pipe) => self.pipeline(dot, pipe)?,
            Kind::Identifier(name) => self.function(dot, name, At::Node(word), &[], None)?,
            Kind::Chain(inner, names) => self.chain(dot, word, inner, names, &[], None)?,
            literal => return self.literal(literal, of).map(Operand::concrete),
        };
        self.check(operand, of)
    }

    /// A constant as the type that is wanted.
    fn literal(&self, literal: &'t Kind, of: Option<Type>) -> Executed<Value> {
        let found = |what: &str| self.fail(&format!("expected {what}; found {literal}"));
        match (of, literal) {
            (None | Some(Type::Any | Type::Value), Kind::Number(number)) => self.constant(number),
            (None | Some(Type::Any | Type::Value | Type::Bool), Kind::Bool(value)) => {
                Ok(Value::Bool(*value))
            }
            (None | Some(Type::Any | Type::Value | Type::Str), Kind::Str { value, .. }) => {
                Ok(value.clone())
            }
            (Some(Type::Int), Kind::Number(Number { int: Some(int), .. })) => Ok(Value::Int(*int)),
            (
                Some(Type::Uint32),
                Kind::Number(Number {
                    uint: Some(uint), ..
                }),
            ) => Ok(Value::Int(i64::try_from(*uint).unwrap_or(i64::MAX))),
            (
                Some(Type::Float),
                Kind::Number(Number {
                    float: Some(float), ..
                }),
            ) => Ok(Value::Float(*float)),
            (Some(Type::Bool), _) => found("bool"),
            (Some(Type::Str), _) => found("string"),
            (Some(Type::Int), _) => found("integer"),
            (Some(Type::Uint32), _) => found("unsigned integer"),
            (Some(Type::Float), _) => found("float"),
            (of, literal) => self.fail(&format!(
                "can't handle {literal} for arg of type {}",
                of.map_or("nil", Type::name)
            )),
        }
    }
}

fn int(index: usize) -> Value {
    Value::Int(i64::try_from(index).unwrap_or(i64::MAX))
}

/// How much a value that a function made weighs.
fn size(value: &Value) -> usize {
    match value {
        Value::Str(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len() * 16,
        _ => 0,
    }
}
