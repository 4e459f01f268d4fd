//! CEL: the expressions of rules, read, type-checked, weighed and run.
//!
//! An [`Expression`] is compiled against an [`Environment`], which says what variables there are
//! and of what type, and then evaluated with values for them. The parser, the values and the
//! functions are `kube-cel`'s (and its `cel`'s). What those lack is here, because Kubernetes
//! refuses at creation what can go wrong later:
//!
//! - `check`: types, with Kubernetes' sentences and places, and what a function is given;
//! - `cost`: the most an expression can cost, from what the schema says about sizes;
//! - `evaluate`: a walk that counts what it does and stops at a limit.
//!
//! An expression that this server cannot run (macros that `cel` does not have) is refused when it
//! is compiled, with the reason.
//!
//! Rules of definitions use it through `crd::rules`. Policies and match conditions can use it the
//! same way: an environment with `object`, `oldObject`, `request`, `params` and so on as
//! [`Type::Dyn`] (or typed), one [`Expression`] per expression, and a budget of
//! [`MATCH_CONDITIONS_BUDGET`] or [`BUDGET`] shared between them.

mod check;
mod cost;
mod evaluate;
mod functions;
mod position;
mod types;
mod values;

use std::collections::BTreeSet;

use kube_cel::cel::IdedExpr;
pub(crate) use kube_cel::cel::Value as CelValue;

pub(crate) use cost::Declared;
pub(crate) use evaluate::Failure;
pub(crate) use types::{Object, Type};
pub(crate) use values::{escape, of_json, optional};

/// What one expression may cost.
pub(crate) const PER_CALL_LIMIT: u64 = 1_000_000;
/// What all expressions of one object may cost.
pub(crate) const BUDGET: u64 = 10_000_000;
/// What the match conditions of one webhook or policy may cost.
#[allow(dead_code, reason = "for webhooks and policies, which come after CRDs")]
pub(crate) const MATCH_CONDITIONS_BUDGET: u64 = 2_500_000;

/// The variables an expression may use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    variables: Vec<(String, Type, Option<std::sync::Arc<Declared>>)>,
}

impl Environment {
    /// With a variable whose type and size are declared.
    pub(crate) fn declared(mut self, name: &str, declared: &std::sync::Arc<Declared>) -> Self {
        let known = Some(declared.clone());
        self.variables
            .push((name.to_owned(), declared.ty.clone(), known));
        self
    }

    /// With a variable of that type, of which no size is known but that of what it may hold.
    pub(crate) fn variable(
        mut self,
        name: &str,
        ty: Type,
        declared: Option<&std::sync::Arc<Declared>>,
    ) -> Self {
        self.variables
            .push((name.to_owned(), ty, declared.cloned()));
        self
    }
}

/// An expression that can be evaluated.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    tree: IdedExpr,
    /// Of what type its value is.
    pub(crate) result: Type,
    /// The most it can cost.
    pub(crate) max_cost: u64,
    used: BTreeSet<String>,
}

impl Expression {
    /// Reads and checks an expression; the error is the text that Kubernetes shows.
    pub(crate) fn compile(source: &str, environment: &Environment) -> Result<Self, String> {
        let tree = position::parse(source)?;
        let checked = check::check(source, &tree, environment)?;
        Ok(Self {
            tree,
            result: checked.result,
            max_cost: checked.max_cost,
            used: checked.used,
        })
    }

    /// Whether it looks at a variable.
    pub(crate) fn uses(&self, variable: &str) -> bool {
        self.used.contains(variable)
    }

    /// Its value with these variables, and what that cost. It stops at the limit.
    pub(crate) fn evaluate(
        &self,
        variables: &[(&str, CelValue)],
        limit: u64,
    ) -> (Result<CelValue, Failure>, u64) {
        evaluate::run(&self.tree, variables, limit)
    }
}
