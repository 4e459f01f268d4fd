//! The interpreter underneath: its functions, and its errors in the words of Kubernetes.

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr};
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value};

use super::error::Failure;
use super::evaluate::Result;

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
pub(super) fn said(error: &ExecutionError) -> Failure {
    let why = match error {
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
        | ExecutionError::ValuesNotComparable(..) => return Failure::NoSuchOverload,
        other => other.to_string(),
    };
    Failure::Said(why)
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::String(text) => text.to_string(),
        other => format!("{other:?}"),
    }
}
