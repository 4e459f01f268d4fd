//! Runs an expression, and stops when it has cost too much.
//!
//! The walk through the tree is ours, so that every step is counted before it is taken; operators
//! and functions are the interpreter's. A function that can make something long out of something
//! short is asked how long before it is called.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};
use kube_cel::cel::objects::Map;
use kube_cel::cel::{IdedExpr, Value};

use super::authorizer;
use super::cost::{LIST_COST, MAP_COST, share};
use super::error::Failure;
use super::functions;
use super::interpreter::{call, said};
use super::operands::{
    Optional, as_key, as_optional, before_call, has, index, is_operator, length, literal_value,
    select_field, type_name, type_value, weight,
};
use super::run::Lazy;
use super::types::Type;
use super::values::optional;

pub(super) type Result<T = Value> = std::result::Result<T, Failure>;

/// The value of an expression with these variables, and what that cost.
/// `lazy` are variables of `variables`, if there are any.
pub(super) fn run(
    tree: &IdedExpr,
    variables: &[(&str, Value)],
    lazy: Option<&Lazy<'_>>,
    limit: u64,
) -> (Result, u64) {
    let scope = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let mut walk = Walk {
        scope,
        lazy,
        cost: 0,
        limit,
    };
    let result = walk.value(tree);
    // An `||` may have swallowed it.
    let result = if walk.cost > limit {
        Err(Failure::TooCostly)
    } else {
        result
    };
    (result, walk.cost)
}

/// Whether this is what a loop is making.
fn is_accumulator(tree: &IdedExpr) -> bool {
    matches!(&tree.expr, Expr::Ident(name) if name == "@result")
}

struct Walk<'a> {
    /// The variables, the innermost last.
    scope: Vec<(String, Value)>,
    /// What `variables` has.
    lazy: Option<&'a Lazy<'a>>,
    cost: u64,
    limit: u64,
}

impl<'a> Walk<'a> {
    fn charge(&mut self, cost: u64) -> Result<()> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit {
            return Err(Failure::TooCostly);
        }
        Ok(())
    }

    fn value(&mut self, tree: &IdedExpr) -> Result {
        match &tree.expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) => {
                self.charge(1)?;
                let found = self.scope.iter().rev().find(|(known, _)| known == name);
                match found {
                    Some((_, value)) => Ok(value.clone()),
                    None if Type::named(name) => Ok(type_value(name)),
                    None => Err(Failure::said(format!("no such attribute(s): {name}"))),
                }
            }
            Expr::Select(select) => {
                if let Some(lazy) = self.variables(&select.operand) {
                    self.charge(1)?;
                    return if select.test {
                        Ok(Value::Bool(lazy.has(&select.field)))
                    } else {
                        self.charge(1)?;
                        lazy.value(&select.field)
                    };
                }
                if let Some(value) = self.qualified(&select.operand, &select.field) {
                    self.charge(1)?;
                    return Ok(value);
                }
                let operand = self.value(&select.operand)?;
                if select.test {
                    return Ok(Value::Bool(has(&operand, &select.field)));
                }
                self.charge(1)?;
                select_field(&operand, &select.field)
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                self.charge(LIST_COST)?;
                let mut items = Vec::with_capacity(list.elements.len());
                for (at, element) in list.elements.iter().enumerate() {
                    let value = self.value(element)?;
                    match (list.optional_indices.contains(&at), as_optional(&value)) {
                        (true, Optional::Some(inner)) => items.push(inner),
                        (true, Optional::None) => {}
                        _ => items.push(value),
                    }
                }
                Ok(Value::List(Arc::new(items)))
            }
            Expr::Map(map) => {
                self.charge(MAP_COST)?;
                let mut entries = HashMap::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return Err(Failure::said("objects cannot be made here"));
                    };
                    let key = self.value(&entry.key)?;
                    let key = as_key(&key).ok_or_else(|| Failure::said("unsupported key type"))?;
                    let value = self.value(&entry.value)?;
                    match (entry.optional, as_optional(&value)) {
                        (true, Optional::None) => {}
                        (true, Optional::Some(inner)) => {
                            entries.insert(key, inner);
                        }
                        _ => {
                            entries.insert(key, value);
                        }
                    }
                }
                Ok(Value::Map(Map {
                    map: Arc::new(entries),
                }))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => {
                Err(Failure::said("objects cannot be made here"))
            }
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Result {
        let items: Vec<Value> = match self.value(&comprehension.iter_range)? {
            Value::List(items) => items.to_vec(),
            Value::Map(map) => {
                // In the order of the keys: a hash map has none of its own.
                let mut keys: Vec<Value> = map.map.keys().map(Value::from).collect();
                keys.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
                keys
            }
            _ => return Err(Failure::NoSuchOverload),
        };
        let init = self.value(&comprehension.accu_init)?;
        self.scope.push((comprehension.accu_var.clone(), init));
        let depth = self.scope.len();
        // What `all` and `exists` could not find out of one item, another may decide.
        let neutral = match &comprehension.accu_init.expr {
            Expr::Literal(LiteralValue::Boolean(value)) => Some(*value.inner()),
            _ => None,
        };
        let run = || -> Result {
            let mut failed = None;
            for item in items {
                match self.value(&comprehension.loop_cond)? {
                    Value::Bool(true) => {}
                    _ => break,
                }
                self.scope.push((comprehension.iter_var.clone(), item));
                let step = self.value(&comprehension.loop_step);
                self.scope.truncate(depth);
                let step = match (step, neutral) {
                    (Err(why), Some(neutral)) if why != Failure::TooCostly => {
                        failed = failed.or(Some(why));
                        Value::Bool(neutral)
                    }
                    (step, _) => step?,
                };
                if let Some((_, accumulated)) = self.scope.last_mut() {
                    *accumulated = step;
                }
            }
            let result = self.value(&comprehension.result)?;
            match (failed, neutral) {
                (Some(failure), Some(neutral)) if result == Value::Bool(neutral) => Err(failure),
                _ => Ok(result),
            }
        };
        let result = run();
        self.scope.truncate(depth - 1);
        result
    }

    fn call(&mut self, call: &CallExpr) -> Result {
        let name = call.func_name.as_str();
        match (name, call.args.as_slice()) {
            ("_&&_", [left, right]) => return self.logic(left, right, false),
            ("_||_", [left, right]) => return self.logic(left, right, true),
            ("_?_:_", [condition, left, right]) => {
                return match self.value(condition)? {
                    Value::Bool(true) => self.value(left),
                    Value::Bool(false) => self.value(right),
                    _ => Err(Failure::NoSuchOverload),
                };
            }
            ("@not_strictly_false", [inner]) => {
                self.charge(1)?;
                return match self.value(inner) {
                    Err(Failure::TooCostly) => Err(Failure::TooCostly),
                    Err(_) => Ok(Value::Bool(true)),
                    Ok(value) => Ok(Value::Bool(value != Value::Bool(false))),
                };
            }
            ("_?._", [operand, field]) => {
                if let Some(lazy) = self.variables(operand)
                    && let Value::String(field) = self.value(field)?
                {
                    self.charge(2)?;
                    let found = lazy.has(&field).then(|| lazy.value(&field));
                    return Ok(optional(found.transpose()?));
                }
            }
            // A loop that makes a list grows the one it has, rather than copy it every time.
            ("_+_", [grown, more]) if is_accumulator(grown) => {
                let more = self.value(more)?;
                self.charge(2)?;
                if let (Some((_, Value::List(list))), Value::List(more)) =
                    (self.accumulator(grown), &more)
                {
                    let mut list = std::mem::take(list);
                    Arc::make_mut(&mut list).extend(more.iter().cloned());
                    return Ok(Value::List(list));
                }
                let grown = self.value(grown)?;
                return self.operator("_+_", grown, more);
            }
            _ => {}
        }
        if let Some(target) = &call.target
            && let Expr::Ident(prefix) = &target.expr
            && !self.scope.iter().any(|(known, _)| known == prefix)
            && let Some(full) = functions::in_namespace(prefix, name)
        {
            let arguments = self.values(&call.args)?;
            return self.function(&full, None, arguments);
        }
        let target = match &call.target {
            Some(target) => Some(self.value(target)?),
            None => None,
        };
        let mut arguments = self.values(&call.args)?;
        if arguments.len() == 2 && is_operator(name) {
            let (Some(right), Some(left)) = (arguments.pop(), arguments.pop()) else {
                return Err(Failure::NoSuchOverload);
            };
            return self.operator(name, left, right);
        }
        self.function(name, target, arguments)
    }

    /// The variables that are evaluated when they are looked at, if this is their name.
    fn variables(&self, tree: &IdedExpr) -> Option<&'a Lazy<'a>> {
        let lazy = self.lazy?;
        let named = matches!(&tree.expr, Expr::Ident(name) if name == "variables");
        let hidden = || self.scope.iter().any(|(known, _)| known == "variables");
        (named && !hidden()).then_some(lazy)
    }

    /// The one variable with a dot in its name.
    fn qualified(&self, tree: &IdedExpr, field: &str) -> Option<Value> {
        let (prefix, last) = authorizer::REQUEST_RESOURCE.split_once('.')?;
        if field != last || !matches!(&tree.expr, Expr::Ident(name) if name == prefix) {
            return None;
        }
        let mut known = self.scope.iter().rev();
        let found = known.find(|(known, _)| known == authorizer::REQUEST_RESOURCE)?;
        Some(found.1.clone())
    }

    fn values(&mut self, trees: &[IdedExpr]) -> Result<Vec<Value>> {
        trees.iter().map(|tree| self.value(tree)).collect()
    }

    /// The innermost list that a loop is making.
    fn accumulator(&mut self, tree: &IdedExpr) -> Option<&mut (String, Value)> {
        let Expr::Ident(name) = &tree.expr else {
            return None;
        };
        self.scope.iter_mut().rev().find(|(known, _)| known == name)
    }

    /// `&&` and `||`: what decides is enough, even beside something that failed.
    fn logic(&mut self, left: &IdedExpr, right: &IdedExpr, decides: bool) -> Result {
        let mut failure = None;
        for part in [left, right] {
            match self.value(part) {
                Ok(Value::Bool(found)) if found == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(Failure::NoSuchOverload)),
                Err(Failure::TooCostly) => return Err(Failure::TooCostly),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn operator(&mut self, name: &str, left: Value, right: Value) -> Result {
        let cost = match name {
            "_==_" | "_!=_" => share(weight(&left).min(weight(&right)), 0.1),
            "@in" => match &right {
                Value::List(items) => items.len() as u64,
                _ => 1,
            },
            "_+_" => match (&left, &right) {
                (Value::String(_) | Value::Bytes(_) | Value::List(_), _) => {
                    share(length(&left).saturating_add(length(&right)), 0.1).max(1)
                }
                _ => 1,
            },
            _ => 1,
        };
        self.charge(cost)?;
        let compare = |wanted: &[Ordering]| match left.partial_cmp(&right) {
            Some(found) => Ok(Value::Bool(wanted.contains(&found))),
            None => Err(Failure::NoSuchOverload),
        };
        let (less, equal, greater) = (Ordering::Less, Ordering::Equal, Ordering::Greater);
        if authorizer::is_one(&left) {
            return Err(Failure::NoSuchOverload);
        }
        match name {
            "_==_" => Ok(Value::Bool(left == right)),
            "_!=_" => Ok(Value::Bool(left != right)),
            "_<_" => compare(&[less]),
            "_<=_" => compare(&[less, equal]),
            "_>_" => compare(&[greater]),
            "_>=_" => compare(&[greater, equal]),
            "_+_" => (left + right).map_err(|error| said(&error)),
            "_-_" => (left - right).map_err(|error| said(&error)),
            "_*_" => (left * right).map_err(|error| said(&error)),
            "_/_" => (left / right).map_err(|error| said(&error)),
            "_%_" => (left % right).map_err(|error| said(&error)),
            "@in" => match right {
                Value::List(items) => Ok(Value::Bool(items.contains(&left))),
                Value::Map(map) => {
                    let key = as_key(&left);
                    Ok(Value::Bool(
                        key.is_some_and(|key| map.map.contains_key(&key)),
                    ))
                }
                _ => Err(Failure::NoSuchOverload),
            },
            "_[_]" => index(&left, &right),
            "_[?_]" => Ok(optional(match as_optional(&left) {
                Optional::None => None,
                Optional::Some(inner) => index(&inner, &right).ok(),
                Optional::Plain => index(&left, &right).ok(),
            })),
            "_?._" => {
                let Value::String(field) = &right else {
                    return Err(Failure::NoSuchOverload);
                };
                Ok(optional(match as_optional(&left) {
                    Optional::None => None,
                    Optional::Some(inner) => select_field(&inner, field).ok(),
                    Optional::Plain => select_field(&left, field).ok(),
                }))
            }
            _ => Err(Failure::NoSuchOverload),
        }
    }

    fn function(&mut self, name: &str, target: Option<Value>, arguments: Vec<Value>) -> Result {
        let all: Vec<&Value> = target.iter().chain(&arguments).collect();
        self.charge(before_call(name, &all))?;
        if let Some(result) = authorizer::call(name, target.as_ref(), &arguments) {
            return result;
        }
        match (name, target.as_ref(), arguments.as_slice()) {
            ("type", None, [value]) => return Ok(type_value(type_name(value))),
            ("dyn", None, [value]) => return Ok(value.clone()),
            ("bool", None, [Value::Bool(value)]) => return Ok(Value::Bool(*value)),
            ("bool", None, [Value::String(text)]) => {
                return match text.as_str() {
                    "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
                    "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
                    _ => Err(Failure::said(
                        "type conversion error from 'string' to 'bool'",
                    )),
                };
            }
            ("!_", None, [value]) => {
                return match value {
                    Value::Bool(value) => Ok(Value::Bool(!value)),
                    _ => Err(Failure::NoSuchOverload),
                };
            }
            ("-_", None, [value]) => {
                return match value {
                    Value::Int(number) => number
                        .checked_neg()
                        .map(Value::Int)
                        .ok_or_else(|| Failure::said("integer overflow")),
                    Value::Float(number) => Ok(Value::Float(-number)),
                    _ => Err(Failure::NoSuchOverload),
                };
            }
            ("value", Some(value), []) => {
                return match as_optional(value) {
                    Optional::Some(inner) => Ok(inner),
                    _ => Err(Failure::said("optional.none() dereference")),
                };
            }
            _ => {}
        }
        let converted = matches!(arguments.as_slice(), [Value::String(_)])
            && target.is_none()
            && matches!(name, "int" | "uint" | "double");
        match call(name, target, arguments) {
            Err(why) if converted && why != Failure::TooCostly => Err(Failure::said(format!(
                "type conversion error from 'string' to '{name}'"
            ))),
            result => result,
        }
    }
}
