//! Why an expression cannot be used, or has no value; each is shown in the words of Kubernetes.

use super::types::Type;

/// Why an expression cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// It can be read, and makes no sense: every complaint, in the order of their places.
    #[error("{0}")]
    Check(String),
}

/// Why an expression of an admission policy or a webhook cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// It cannot be compiled at all.
    #[error("compilation failed: {0}")]
    Compile(#[from] CompileError),
    /// Its value is of another type than what is wanted.
    #[error("must evaluate to {wanted} but got {found}")]
    Type {
        /// What is wanted, in words.
        wanted: String,
        /// What it evaluates to.
        found: String,
    },
}

impl AdmissionError {
    pub(super) fn of_type(wanted: &[&str], found: &Type) -> Self {
        let wanted = match wanted {
            [one] => (*one).to_owned(),
            many => format!("one of [{}]", many.join(" ")),
        };
        Self::Type {
            wanted,
            found: found.to_string(),
        }
    }
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// A function or an operator was given what it does not take.
    #[error("no such overload")]
    NoSuchOverload,
    /// Something else went wrong.
    #[error("{0}")]
    Said(String),
    /// It cost more than it may.
    #[error("operation cancelled: actual cost limit exceeded")]
    TooCostly,
}

impl Failure {
    pub(super) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }
}

/// Why an expression of a [`Run`](super::Run) has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// It could not be compiled.
    #[error("compilation error: {0}")]
    Compile(AdmissionError),
    /// It was evaluated, and failed.
    #[error("expression '{expression}' resulted in error: {failure}")]
    Evaluate {
        /// Its text.
        expression: String,
        /// Why it failed.
        failure: Failure,
    },
}
