//! Fields and variables.

use std::rc::Rc;

use super::{At, Executed, Operand, State};
use crate::template::method;
use crate::template::node::{Kind, Node};
use crate::template::value::{MapType, Value};

impl<'t> State<'t> {
    pub(super) fn field(
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

    pub(super) fn chain(
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

    pub(super) fn variable(
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
}
