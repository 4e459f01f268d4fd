//! Calls of functions and methods.

use std::rc::Rc;

use super::{At, Executed, Operand, State};
use crate::functions::{self, Function, Type};
use crate::template::error::Error;
use crate::template::node::Node;
use crate::template::value::Value;

impl<'t> State<'t> {
    pub(super) fn function(
        &mut self,
        dot: &Operand,
        name: &Rc<str>,
        call: At<'t>,
        words: &'t [Node],
        last: Option<Operand>,
    ) -> Executed<Operand> {
        let find = match &self.env.environment {
            Some(_) => functions::find_with_environment,
            None => functions::find,
        };
        let Some(function) = find(name) else {
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
    pub(super) fn call(
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
        self.env.enter_call(&self.tree.source, call.place());
        let result = (function.run)(&context, &args);
        self.env.leave_call();
        match result {
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
}

/// How much a value that a function made weighs.
fn size(value: &Value) -> usize {
    match value {
        Value::Str(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len() * 16,
        _ => 0,
    }
}
