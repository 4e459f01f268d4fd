//! Text, branches, ranges, and templates within templates.

use std::rc::Rc;

use super::{At, Executed, Flow, Operand, State};
use crate::template::node::{Branch, Kind, Node, Pipe};
use crate::template::print;
use crate::template::value::{ListType, MapType, Value};

impl<'t> State<'t> {
    pub(super) fn list(&mut self, dot: &Operand, nodes: &'t [Node]) -> Executed<Flow> {
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
}

fn int(index: usize) -> Value {
    Value::Int(i64::try_from(index).unwrap_or(i64::MAX))
}
