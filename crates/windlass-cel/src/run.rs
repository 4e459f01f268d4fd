//! Expressions of one request, run one after the other on one budget.
//!
//! A policy may name expressions as variables. A variable is evaluated when an expression first
//! looks at it, so that one nobody looks at cannot fail, and its value is kept for the rest of the
//! run. What it costs is taken off the budget, and so is what each expression costs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::error::{AdmissionError, Failure, RunError};
use super::evaluate;
use super::{CelValue, Expression, PER_CALL_LIMIT};

const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression as it was written, and what came of compiling it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The text.
    pub source: String,
    /// What compiling made of it, or why it cannot be run.
    pub expression: Result<Expression, AdmissionError>,
}

/// Variables that are expressions, by name.
pub type Definitions = BTreeMap<String, Compiled>;

/// The budget is spent: nothing more is run.
#[derive(Debug)]
pub struct Spent;

impl Spent {
    /// What Kubernetes says then.
    pub fn message() -> &'static str {
        SPENT
    }
}

/// One run.
pub struct Run<'a> {
    lazy: Lazy<'a>,
    budget: u64,
}

impl<'a> Run<'a> {
    /// A run with variables, definitions and a budget.
    pub fn new(seen: &'a [(&'a str, CelValue)], definitions: &'a Definitions, budget: u64) -> Self {
        let lazy = Lazy {
            definitions,
            seen,
            known: RefCell::default(),
            cost: Cell::new(0),
        };
        Self { lazy, budget }
    }

    /// What is left of the budget.
    pub fn left(&self) -> u64 {
        self.budget
    }

    /// The value of an expression, or why it has none.
    pub fn evaluate(&mut self, compiled: &Compiled) -> Result<Result<CelValue, RunError>, Spent> {
        let expression = match &compiled.expression {
            Ok(expression) => expression,
            Err(why) => return Ok(Err(RunError::Compile(why.clone()))),
        };
        let limit = PER_CALL_LIMIT.min(self.budget);
        let (result, cost) =
            evaluate::run(&expression.tree, self.lazy.seen, Some(&self.lazy), limit);
        let cost = cost.saturating_add(self.lazy.cost.take());
        if cost > self.budget {
            return Err(Spent);
        }
        self.budget -= cost;
        Ok(result.map_err(|failure| RunError::Evaluate {
            expression: compiled.source.clone(),
            failure,
        }))
    }
}

/// Variables that are evaluated when they are looked at.
pub(super) struct Lazy<'a> {
    definitions: &'a Definitions,
    seen: &'a [(&'a str, CelValue)],
    known: RefCell<BTreeMap<String, Result<CelValue, Failure>>>,
    /// What they have cost since somebody asked.
    cost: Cell<u64>,
}

impl Lazy<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.definitions.contains_key(name)
    }

    pub(super) fn value(&self, name: &str) -> Result<CelValue, Failure> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.find(name);
        let mut known = self.known.borrow_mut();
        known.insert(name.to_owned(), found.clone());
        found
    }

    fn find(&self, name: &str) -> Result<CelValue, Failure> {
        let failed = |how: &str, why: &dyn std::fmt::Display| {
            Failure::said(format!(
                "composited variable \"{name}\" fails to {how}: {why}"
            ))
        };
        let Some(compiled) = self.definitions.get(name) else {
            return Err(Failure::said(format!("no such key: {name}")));
        };
        let expression = match &compiled.expression {
            Ok(expression) => expression,
            Err(why) => return Err(failed("compile", why)),
        };
        // A variable sees only those before it, so this comes to an end.
        let (result, cost) = evaluate::run(&expression.tree, self.seen, Some(self), PER_CALL_LIMIT);
        self.cost.set(self.cost.get().saturating_add(cost));
        result.map_err(|failure| failed("evaluate", &failure))
    }
}
