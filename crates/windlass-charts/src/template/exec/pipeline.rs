//! Pipelines, their commands, and the constants and arguments in them.

use std::rc::Rc;

use super::{At, Executed, Operand, State};
use crate::functions::Type;
use crate::template::node::{Command, Kind, Node, Number, Pipe};
use crate::template::value::Value;

impl<'t> State<'t> {
    pub(super) fn set(&mut self, name: &str, value: Operand) -> Executed<()> {
        match (self.variables.iter_mut().rev()).find(|(other, _)| **other == *name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => self.fail(&format!("undefined variable: {name}")),
        }
    }

    pub(super) fn pipeline(&mut self, dot: &Operand, pipe: &'t Pipe) -> Executed<Operand> {
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
    pub(super) fn not_a_function(&self, words: &'t [Node], last: Option<&Operand>) -> Executed<()> {
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

    /// Checks that a value fits where it goes.
    pub(super) fn check(&self, operand: Operand, of: Option<Type>) -> Executed<Operand> {
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

    pub(super) fn argument(
        &mut self,
        dot: &Operand,
        of: Option<Type>,
        word: &'t Node,
    ) -> Executed<Operand> {
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
