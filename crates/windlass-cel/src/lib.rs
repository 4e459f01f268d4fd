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
//! Rules of definitions declare what their expressions see by the schema; what match conditions of
//! webhooks and policies see is declared in [`admission`].

pub mod admission;
mod authorizer;
mod check;
mod cost;
mod error;
mod evaluate;
mod functions;
mod interpreter;
mod operands;
mod position;
mod run;
mod types;
mod values;

use std::collections::BTreeSet;

use kube_cel::cel::IdedExpr;
pub use kube_cel::cel::Value as CelValue;

pub use authorizer::{Authorizer, Decision, Question, ResourceQuestion, Who};
pub use cost::Declared;
pub use error::{AdmissionError, CompileError, Failure, RunError};
pub use run::{Compiled, Definitions, Run, Spent};
pub use types::{Object, Type};
pub use values::{of_json, optional};
pub use windlass_apimachinery::cel_names::escape;

/// What is said of an expression that Kubernetes runs and this server does not.
pub const NOT_RUN: &str = "is not run by this version of windlass";
/// What one expression may cost.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// What all expressions of one object may cost.
pub const BUDGET: u64 = 10_000_000;
/// What the match conditions of one webhook may cost.
pub const MATCH_CONDITIONS_BUDGET: u64 = 2_500_000;

/// The variables an expression may use.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<(String, Type, Option<std::sync::Arc<Declared>>)>,
}

impl Environment {
    /// With a variable whose type and size are declared.
    #[must_use]
    pub fn declared(mut self, name: &str, declared: &std::sync::Arc<Declared>) -> Self {
        let known = Some(declared.clone());
        self.variables
            .push((name.to_owned(), declared.ty.clone(), known));
        self
    }

    /// With a variable of that type, of which no size is known but that of what it may hold.
    #[must_use]
    pub fn variable(
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
pub struct Expression {
    tree: IdedExpr,
    /// Of what type its value is.
    pub result: Type,
    /// The most it can cost.
    pub max_cost: u64,
    used: BTreeSet<String>,
}

impl Expression {
    /// Reads and checks an expression.
    pub fn compile(source: &str, environment: &Environment) -> Result<Self, CompileError> {
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
    pub fn uses(&self, variable: &str) -> bool {
        self.used.contains(variable)
    }

    /// Its value with these variables, and what that cost. It stops at the limit.
    pub fn evaluate(
        &self,
        variables: &[(&str, CelValue)],
        limit: u64,
    ) -> (Result<CelValue, Failure>, u64) {
        evaluate::run(&self.tree, variables, None, limit)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn anything() -> Environment {
        Environment::default().variable("self", Type::Dyn, None)
    }

    fn run(source: &str, value: CelValue) -> Result<CelValue, Failure> {
        let expression = Expression::compile(source, &anything()).unwrap();
        expression.evaluate(&[("self", value)], PER_CALL_LIMIT).0
    }

    fn numbers(count: i64) -> CelValue {
        CelValue::List(Arc::new((0..count).map(CelValue::Int).collect()))
    }

    #[test]
    fn a_hostile_rule_is_stopped() {
        let started = Instant::now();
        for rule in [
            "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))",
            "self.map(a, self.map(b, self.map(c, a))).size() >= 0",
            "self.exists(a, self.exists(b, self.exists(c, self.exists(d, a > 9999999)))) || true",
            "lists.range(100000000).size() > 0",
            "['a'.replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')].map(x, x.replace('', x)).map(x, x.replace('', x)).map(x, x.replace('', x)).map(x, x.replace('', x)).size() > 0",
            "self.map(x, self.map(y, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx').join('yyyyyyyyyyyyyyyyyyyy')).join('z').size() > 0",
        ] {
            assert_eq!(run(rule, numbers(2000)), Err(Failure::TooCostly), "{rule}");
        }
        // Far beyond what it takes; a rule that is not stopped takes hours.
        assert!(started.elapsed() < Duration::from_mins(1));
    }

    #[test]
    fn a_list_grows_without_being_copied() {
        let rule = "self.map(x, x + 1).filter(x, x % 2 == 0).size() == 25000";
        let expression = Expression::compile(rule, &anything()).unwrap();
        let variables = [("self", numbers(50_000))];
        let (result, _) = expression.evaluate(&variables, BUDGET);
        assert_eq!(result, Ok(CelValue::Bool(true)));
    }

    #[test]
    fn what_decides_is_enough() {
        for (rule, result) in [
            ("self[5] > 0 || true", Ok(CelValue::Bool(true))),
            ("false && self[5] > 0", Ok(CelValue::Bool(false))),
            (
                "self.exists(x, self[5] > 0 || x == 1)",
                Ok(CelValue::Bool(true)),
            ),
            (
                "self.all(x, x == 1 || self[5] > 0)",
                Err(Failure::Said("index out of bounds: 5".into())),
            ),
            (
                "self.exists(x, x == 1 || self[5] > 0)",
                Ok(CelValue::Bool(true)),
            ),
            ("type(self[0]) == int", Ok(CelValue::Bool(true))),
            ("self[?5].hasValue()", Ok(CelValue::Bool(false))),
            ("self[?1].orValue(7) == 1", Ok(CelValue::Bool(true))),
        ] {
            assert_eq!(run(rule, numbers(2)), result, "{rule}");
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for rule in [
            "self.all(i, v, v > i)",
            "self.sortBy(x, x)",
            "self.optMap(x, x)",
            "self.transformList(i, v, v)",
        ] {
            let refused = Expression::compile(rule, &anything()).unwrap_err();
            assert!(refused.to_string().contains(NOT_RUN), "{refused}");
        }
        assert!(Expression::compile("Foo{a: 1}", &anything()).is_err());
    }

    proptest! {
        #[test]
        fn no_expression_panics(source in "[a-z0-9 .()\\[\\]{}\"'+*/<>=!&|?:,_-]{0,60}") {
            if let Ok(expression) = Expression::compile(&source, &anything()) {
                let _ = expression.evaluate(&[("self", numbers(3))], 10_000);
            }
        }

        #[test]
        fn no_rule_panics(parts in proptest::collection::vec(proptest::sample::select(&[
            "self", ".a", "[0]", "[?0]", ".?a", "(", ")", "1", "'x'", "==", "+", "-", "&&", "||", "?", ":",
            ".all(x, ", ".map(x, ", "has(", ".size()", "!", "in", "[", "]", "{", "}", ",", ".format([",
            "duration('1s')", "null", "1.5", "b'x'", ".orValue(", "%", "/", "0",
        ][..]), 0..12)) {
            let source = parts.join(" ");
            if let Ok(expression) = Expression::compile(&source, &anything()) {
                let _ = expression.evaluate(&[("self", numbers(3))], 10_000);
            }
        }
    }
}
