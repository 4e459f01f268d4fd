//! Runs an expression, and stops when it has cost too much.
//!
//! The walk through the tree is ours, so that every step is counted before it is taken; operators
//! and functions are the interpreter's. A function that can make something long out of something
//! short is asked how long before it is called.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value};

use super::cost::{LIST_COST, MAP_COST, share};
use super::functions;
use super::types::Type;
use super::values::optional;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// In the words of Kubernetes.
    Said(String),
    /// It cost more than it may.
    TooCostly,
}

impl Failure {
    fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }
}

type Result<T = Value> = std::result::Result<T, Failure>;

/// Types as values are texts that no object can hold.
const TYPE_PREFIX: &str = "\u{0}type:";

thread_local! {
    /// The functions, which take long to gather.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// Calls a function of the interpreter.
pub(super) fn call(name: &str, target: Option<Value>, arguments: Vec<Value>) -> Result {
    let identifier = |name: String| IdedExpr {
        id: 0,
        expr: Expr::Ident(name),
    };
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        let (namespace, plain) = match name.rsplit_once('.') {
            Some((namespace, plain)) => (Some(namespace), plain),
            None => (None, name),
        };
        let mut args = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.into_iter().enumerate() {
            let variable = format!("@{at}");
            context.add_variable_from_value(variable.clone(), argument);
            args.push(identifier(variable));
        }
        let target = match (namespace, target) {
            (Some(namespace), _) => Some(identifier(namespace.to_owned())),
            (None, Some(target)) => {
                context.add_variable_from_value("@target", target);
                Some(identifier("@target".into()))
            }
            (None, None) => None,
        };
        let tree = IdedExpr {
            id: 0,
            expr: Expr::Call(CallExpr {
                func_name: plain.to_owned(),
                target: target.map(Box::new),
                args,
            }),
        };
        Value::resolve(&tree, &context).map_err(|error| said(&error))
    })
}

/// The words of Kubernetes for what went wrong in the interpreter.
fn said(error: &ExecutionError) -> Failure {
    Failure::Said(match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".into(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".into(),
        ExecutionError::Overflow(..) => "integer overflow".into(),
        ExecutionError::IndexOutOfBounds(at) => format!("index out of bounds: {}", shown(at)),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..) => "no such overload".into(),
        other => other.to_string(),
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::String(text) => text.to_string(),
        other => format!("{other:?}"),
    }
}

/// The value of an expression with these variables, and what that cost.
pub(super) fn run(tree: &IdedExpr, variables: &[(&str, Value)], limit: u64) -> (Result, u64) {
    let scope = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let mut walk = Walk {
        scope,
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

struct Walk {
    /// The variables, the innermost last.
    scope: Vec<(String, Value)>,
    cost: u64,
    limit: u64,
}

impl Walk {
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
                        (true, Some(inner)) => items.extend(inner),
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
                        (true, Some(None)) => {}
                        (true, Some(Some(inner))) => {
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
            _ => return Err(Failure::said("no such overload")),
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
                    (Err(Failure::Said(why)), Some(neutral)) => {
                        failed = failed.or(Some(Failure::Said(why)));
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
                    _ => Err(Failure::said("no such overload")),
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
            // A loop that makes a list grows the one it has, rather than copy it every time.
            ("_+_", [grown, more]) if self.is_accumulator(grown) => {
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
                return Err(Failure::said("no such overload"));
            };
            return self.operator(name, left, right);
        }
        self.function(name, target, arguments)
    }

    fn values(&mut self, trees: &[IdedExpr]) -> Result<Vec<Value>> {
        trees.iter().map(|tree| self.value(tree)).collect()
    }

    fn is_accumulator(&self, tree: &IdedExpr) -> bool {
        matches!(&tree.expr, Expr::Ident(name) if name == "@result")
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
                Ok(_) => failure = failure.or(Some(Failure::said("no such overload"))),
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
            None => Err(Failure::said("no such overload")),
        };
        let (less, equal, greater) = (Ordering::Less, Ordering::Equal, Ordering::Greater);
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
                    Ok(Value::Bool(key.is_some_and(|key| map.map.contains_key(&key))))
                }
                _ => Err(Failure::said("no such overload")),
            },
            "_[_]" => index(&left, &right),
            "_[?_]" => Ok(optional(match as_optional(&left) {
                Some(None) => None,
                Some(Some(inner)) => index(&inner, &right).ok(),
                None => index(&left, &right).ok(),
            })),
            "_?._" => {
                let Value::String(field) = &right else {
                    return Err(Failure::said("no such overload"));
                };
                Ok(optional(match as_optional(&left) {
                    Some(None) => None,
                    Some(Some(inner)) => select_field(&inner, field).ok(),
                    None => select_field(&left, field).ok(),
                }))
            }
            _ => Err(Failure::said("no such overload")),
        }
    }

    fn function(&mut self, name: &str, target: Option<Value>, arguments: Vec<Value>) -> Result {
        let all: Vec<&Value> = target.iter().chain(&arguments).collect();
        self.charge(before_call(name, &all))?;
        match (name, target.as_ref(), arguments.as_slice()) {
            ("type", None, [value]) => return Ok(type_value(type_name(value))),
            ("dyn", None, [value]) => return Ok(value.clone()),
            ("bool", None, [Value::Bool(value)]) => return Ok(Value::Bool(*value)),
            ("bool", None, [Value::String(text)]) => {
                return match text.as_str() {
                    "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
                    "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
                    _ => Err(Failure::said("type conversion error from 'string' to 'bool'")),
                };
            }
            ("!_", None, [value]) => {
                return match value {
                    Value::Bool(value) => Ok(Value::Bool(!value)),
                    _ => Err(Failure::said("no such overload")),
                };
            }
            ("-_", None, [value]) => {
                return match value {
                    Value::Int(number) => number
                        .checked_neg()
                        .map(Value::Int)
                        .ok_or_else(|| Failure::said("integer overflow")),
                    Value::Float(number) => Ok(Value::Float(-number)),
                    _ => Err(Failure::said("no such overload")),
                };
            }
            ("value", Some(value), []) => {
                return match as_optional(value) {
                    Some(Some(inner)) => Ok(inner),
                    _ => Err(Failure::said("optional.none() dereference")),
                };
            }
            _ => {}
        }
        call(name, target, arguments)
    }
}

fn is_operator(name: &str) -> bool {
    matches!(
        name,
        "_==_"
            | "_!=_"
            | "_<_"
            | "_<=_"
            | "_>_"
            | "_>=_"
            | "_+_"
            | "_-_"
            | "_*_"
            | "_/_"
            | "_%_"
            | "@in"
            | "_[_]"
            | "_[?_]"
            | "_?._"
    )
}

/// What a call costs, told from what it is given.
fn before_call(name: &str, all: &[&Value]) -> u64 {
    let size = |at: usize| all.get(at).map_or(0, |value| length(value));
    let walk = |size: u64| share(size, 0.1);
    match name {
        "matches" | "find" | "findAll" => {
            walk(size(0).saturating_add(1)).saturating_mul(share(size(1), 0.25)).max(1)
        }
        "contains" => walk(size(0)).saturating_mul(walk(size(1))).max(1),
        // What is put in may be put in between all letters.
        "replace" => walk(size(0).saturating_add(size(0).saturating_add(1).saturating_mul(size(2))))
            .max(1),
        "join" => {
            let texts = all.first().map_or(0, |list| weight(list));
            walk(texts.saturating_add(size(0).saturating_mul(size(1)))).max(1)
        }
        "format" => walk(size(0).saturating_add(all.get(1).map_or(0, |list| weight(list)))).max(1),
        "lists.range" => match all.first() {
            Some(Value::Int(count)) => u64::try_from(*count).unwrap_or(0).max(1),
            _ => 1,
        },
        "sets.contains" | "sets.equivalent" | "sets.intersects" | "distinct" => {
            let other = size(usize::from(name != "distinct"));
            size(0).saturating_mul(other).max(1)
        }
        "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf" | "sort" | "reverse"
        | "slice" | "flatten" => all.first().map_or(1, |list| weight(list)).max(1),
        "split" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "url" | "isURL" | "quantity"
        | "isQuantity" | "ip" | "cidr" | "isIP" | "isCIDR" | "semver" | "isSemver" | "bytes"
        | "string" | "startsWith" | "endsWith" | "validate" | "strings.quote" => walk(size(0)).max(1),
        _ => 1,
    }
}

/// Items, entries or letters.
fn length(value: &Value) -> u64 {
    let length = match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        _ => 1,
    };
    length as u64
}

/// All there is in a value.
fn weight(value: &Value) -> u64 {
    match value {
        Value::List(items) => items
            .iter()
            .fold(0, |sum: u64, item| sum.saturating_add(weight(item).max(1))),
        Value::Map(map) => map
            .map
            .values()
            .fold(0, |sum: u64, item| sum.saturating_add(weight(item).max(1))),
        other => length(other),
    }
}

fn literal_value(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
        LiteralValue::Bytes(value) => Value::Bytes(Arc::new(value.inner().to_vec())),
        LiteralValue::Double(value) => Value::Float(*value.inner()),
        LiteralValue::Int(value) => Value::Int(*value.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(value) => Value::String(Arc::new(value.inner().to_owned())),
        LiteralValue::UInt(value) => Value::UInt(*value.inner()),
    }
}

fn type_value(name: &str) -> Value {
    Value::String(Arc::new(format!("{TYPE_PREFIX}{name}")))
}

fn type_name(value: &Value) -> &str {
    match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(text) if text.starts_with(TYPE_PREFIX) => "type",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Null => "null_type",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Opaque(_) | Value::Function(..) => "opaque",
    }
}

/// What is in an optional value, if it is one.
fn as_optional(value: &Value) -> Option<Option<Value>> {
    let found: &OptionalValue = value.try_into().ok()?;
    Some(found.value().cloned())
}

fn as_key(value: &Value) -> Option<Key> {
    Some(match value {
        Value::Int(number) => Key::Int(*number),
        Value::UInt(number) => Key::Uint(*number),
        Value::Bool(value) => Key::Bool(*value),
        Value::String(text) => Key::String(text.clone()),
        _ => return None,
    })
}

fn has(value: &Value, field: &str) -> bool {
    match as_optional(value) {
        Some(inner) => inner.is_some_and(|inner| has(&inner, field)),
        None => select_field(value, field).is_ok(),
    }
}

fn select_field(value: &Value, field: &str) -> Result {
    if let Some(inner) = as_optional(value) {
        return Ok(optional(
            inner.and_then(|inner| select_field(&inner, field).ok()),
        ));
    }
    match value {
        Value::Map(map) => {
            let key = Key::String(Arc::new(field.to_owned()));
            let found = map.map.get(&key).cloned();
            found.ok_or_else(|| Failure::said(format!("no such key: {field}")))
        }
        _ => Err(Failure::said("no such overload")),
    }
}

fn index(value: &Value, at: &Value) -> Result {
    if let Some(inner) = as_optional(value) {
        return Ok(optional(inner.and_then(|inner| index(&inner, at).ok())));
    }
    match (value, at) {
        (Value::List(items), Value::Int(place)) => {
            let found = usize::try_from(*place).ok().and_then(|at| items.get(at));
            found
                .cloned()
                .ok_or_else(|| Failure::said(format!("index out of bounds: {place}")))
        }
        (Value::Map(map), key) => {
            let found = as_key(key).and_then(|key| map.map.get(&key).cloned());
            found.ok_or_else(|| Failure::said(format!("no such key: {}", shown(key))))
        }
        _ => Err(Failure::said("no such overload")),
    }
}
