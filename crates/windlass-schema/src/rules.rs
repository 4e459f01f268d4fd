//! Rules of a definition, run on its objects.
//!
//! The rules of a schema are compiled once, with those of the schemas inside it, into a tree of
//! [`Rules`] that is walked along an object. Rules that look at `oldSelf` run only where there was
//! something before; what the others find wrong is only warned about where nothing changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::declare::declare;
use super::field_path;
use super::path::{child, shown};
use super::ratchet::{Correlated, Items, Keyed};
use super::schema::{Rule, Schema};
use windlass_apimachinery::field::{self, Cause};
use windlass_apimachinery::findings::MOST_TEXT;
use windlass_apimachinery::place::Place;
use windlass_apimachinery::steps::step;
use windlass_cel::{
    BUDGET, CelValue, Declared, Environment, Expression, Failure, PER_CALL_LIMIT, Type, of_json,
    optional,
};

/// How long a message that an expression makes may be.
const MAX_MESSAGE: usize = 5 * 1024;

/// A rule that can be run.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Rule,
    pub(super) expression: Expression,
    pub(super) message: Option<Expression>,
    pub(super) uses_old: bool,
    /// The field a failure is told of, below where the rule stands.
    field: String,
}

/// What of a rule is wrong.
pub(super) enum Refusal {
    Rule(String),
    Message(String),
}

/// Compiles a rule of a schema, of which this is declared.
pub(super) fn compile(
    rule: &Rule,
    schema: &Schema,
    declared: &Arc<Declared>,
) -> Result<Compiled, Refusal> {
    let environment = Environment::default().declared("self", declared);
    let environment = if rule.optional_old_self == Some(true) {
        let ty = Type::Optional(Box::new(declared.ty.clone()));
        environment.variable("oldSelf", ty, Some(declared))
    } else {
        environment.declared("oldSelf", declared)
    };
    let expression = Expression::compile(&rule.rule, &environment)
        .map_err(|why| Refusal::Rule(format!("compilation failed: {why}")))?;
    if !matches!(expression.result, Type::Bool) {
        let why = "cel expression must evaluate to a bool";
        return Err(Refusal::Rule(why.into()));
    }
    let message = match rule.message_expression.as_str() {
        "" => None,
        source => {
            let compiled = Expression::compile(source, &environment).map_err(|why| {
                Refusal::Message(format!("messageExpression compilation failed: {why}"))
            })?;
            if !matches!(compiled.result, Type::String) {
                let why = "messageExpression must evaluate to a string";
                return Err(Refusal::Message(why.into()));
            }
            Some(compiled)
        }
    };
    let field = field_path::find(&rule.field_path, schema, true).map(|(at, _)| at);
    Ok(Compiled {
        uses_old: expression.uses("oldSelf"),
        expression,
        message,
        field: field.unwrap_or_default(),
        rule: rule.clone(),
    })
}

/// The rules of a schema and of those inside it.
#[derive(Debug)]
pub(super) struct Rules {
    own: Vec<Compiled>,
    declared: Option<Arc<Declared>>,
    ty: String,
    properties: BTreeMap<String, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
}

impl Rules {
    /// The rules of a schema that was accepted; `None` if there are none.
    pub(super) fn of(schema: &Schema, is_resource: bool) -> Option<Self> {
        if !schema.has_rules() {
            return None;
        }
        let declared = declare(schema, is_resource);
        let own = match &declared {
            Some(declared) => schema
                .rules
                .iter()
                .filter_map(|rule| compile(rule, schema, declared).ok())
                .collect(),
            None => Vec::new(),
        };
        let of = |schema: &Schema| Self::of(schema, schema.embedded);
        Some(Self {
            own,
            declared,
            ty: schema.ty.clone(),
            properties: schema
                .properties
                .iter()
                .filter_map(|(name, schema)| Some((name.clone(), of(schema)?)))
                .collect(),
            values: schema.values().and_then(of).map(Box::new),
            items: schema.item().and_then(of).map(Box::new),
        })
    }

    /// What the rules find wrong with an object, and what they would but for ratcheting.
    pub(super) fn check(
        &self,
        object: &Value,
        old: Option<&Value>,
        schema: &Schema,
        at: &str,
        ratchet: bool,
    ) -> (Vec<Cause>, Vec<String>) {
        let mut run = Run {
            budget: BUDGET,
            spent: false,
            length: 0,
            causes: Vec::new(),
            warnings: Vec::new(),
        };
        let correlated = old
            .filter(|_| ratchet)
            .map(|old| Correlated::new(object, old, schema));
        let pairing = Pairing {
            current: correlated,
            nearest: None,
            is_root: true,
        };
        run.walk(self, schema, object, old, pairing, &Place::At(at));
        (run.causes, run.warnings)
    }
}

/// A value and what it was, or the nearest thing around it of which that is known.
#[derive(Clone, Copy)]
struct Pairing<'a> {
    current: Option<Correlated<'a>>,
    nearest: Option<Correlated<'a>>,
    is_root: bool,
}

impl<'a> Pairing<'a> {
    fn key(self, name: &str) -> Self {
        let Some(current) = self.current else {
            return self;
        };
        if self.is_root && matches!(name, "apiVersion" | "kind") {
            return Self {
                current: None,
                nearest: None,
                is_root: false,
            };
        }
        Self::below(current, current.key(name))
    }

    /// The item at `place` of a list, of which the items are these.
    fn item(self, items: Option<&Items<'a>>, place: usize) -> Self {
        match (self.current, items) {
            (Some(current), Some(items)) => Self::below(current, items.at(place)),
            _ => self,
        }
    }

    fn below(around: Correlated<'a>, inner: Option<Correlated<'a>>) -> Self {
        Self {
            current: inner,
            nearest: Some(around),
            is_root: false,
        }
    }

    fn is_unchanged(self) -> bool {
        self.current
            .or(self.nearest)
            .is_some_and(Correlated::is_unchanged)
    }
}

/// Rules on their way through one object.
struct Run {
    budget: u64,
    /// The budget is used up: nothing more is run.
    spent: bool,
    /// How much text was found.
    length: usize,
    causes: Vec<Cause>,
    warnings: Vec<String>,
}

impl Run {
    fn walk(
        &mut self,
        rules: &Rules,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        pairing: Pairing<'_>,
        at: &Place<'_>,
    ) {
        step();
        let old = old.filter(|old| !old.is_null());
        if value.is_null() || self.spent {
            return;
        }
        self.run_own(rules, value, old, pairing, at);
        match value {
            Value::Array(items) => {
                let (Some(inner), Some(item_schema)) = (&rules.items, schema.item()) else {
                    return;
                };
                let before = old.map(|old| Keyed::of(old, schema));
                let paired = pairing.current.map(Correlated::items);
                for (place, item) in items.iter().enumerate() {
                    let old = before.as_ref().and_then(|before| before.same_keys(item));
                    let pairing = pairing.item(paired.as_ref(), place);
                    let at = Place::Item(at, place);
                    self.walk(inner, item_schema, item, old, pairing, &at);
                }
            }
            Value::Object(map) => {
                for (name, value) in map {
                    let old = old.and_then(|old| old.get(name));
                    let pairing = pairing.key(name);
                    if let (Some(inner), Some(property)) =
                        (rules.properties.get(name), schema.properties.get(name))
                    {
                        let at = Place::Field(at, name);
                        self.walk(inner, property, value, old, pairing, &at);
                    } else if let (Some(inner), Some(values)) = (&rules.values, schema.values()) {
                        let at = Place::Key(at, name);
                        self.walk(inner, values, value, old, pairing, &at);
                    }
                }
            }
            _ => {}
        }
    }

    fn run_own(
        &mut self,
        rules: &Rules,
        value: &Value,
        old: Option<&Value>,
        pairing: Pairing<'_>,
        at: &Place<'_>,
    ) {
        if rules.own.is_empty() {
            return;
        }
        let declared = rules.declared.as_deref();
        let itself = of_json(value, declared);
        let before = old.map(|old| of_json(old, declared));
        for compiled in &rules.own {
            if self.spent {
                return;
            }
            let is_optional = compiled.rule.optional_old_self == Some(true);
            if compiled.uses_old && before.is_none() && !is_optional {
                continue;
            }
            let mut variables = vec![("self", itself.clone())];
            if compiled.uses_old || before.is_some() {
                let before = match (is_optional, &before) {
                    (true, before) => optional(before.clone()),
                    (false, Some(before)) => before.clone(),
                    (false, None) => CelValue::Null,
                };
                variables.push(("oldSelf", before));
            }
            self.run_rule(compiled, rules, value, &variables, pairing, at);
        }
    }

    /// Evaluates something, and pays for it.
    fn pay(
        &mut self,
        expression: &Expression,
        variables: &[(&str, CelValue)],
    ) -> Result<CelValue, Failure> {
        let limit = PER_CALL_LIMIT.min(self.budget);
        let (result, cost) = expression.evaluate(variables, limit);
        self.budget = self.budget.saturating_sub(cost);
        result
    }

    fn run_rule(
        &mut self,
        compiled: &Compiled,
        rules: &Rules,
        value: &Value,
        variables: &[(&str, CelValue)],
        pairing: Pairing<'_>,
        at: &Place<'_>,
    ) {
        let rule = &compiled.rule;
        let of_type = Value::from(rules.ty.as_str());
        let name = if rule.message.is_empty() {
            rule.rule.trim()
        } else {
            rule.message.trim()
        };
        let had_less = self.budget < PER_CALL_LIMIT;
        match self.pay(&compiled.expression, variables) {
            Ok(CelValue::Bool(true)) => return,
            Ok(_) => {}
            Err(Failure::TooCostly) => {
                self.spent = true;
                let why = if had_less {
                    "validation failed due to running out of cost budget, no further validation rules will be run".to_owned()
                } else {
                    format!(
                        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
                    )
                };
                self.add(field::invalid(shown(&at.path()), &of_type, &why));
                return;
            }
            Err(failure) => {
                let why = match failure {
                    Failure::NoSuchOverload => format!(
                        "'{failure}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
                    ),
                    failure => format!("{failure} evaluating rule: {name}"),
                };
                self.add(field::invalid(shown(&at.path()), &of_type, &why));
                return;
            }
        }
        let detail = self.message(compiled, variables);
        let at = at.path();
        let at = match compiled.field.as_str() {
            "" => shown(&at),
            below if below.starts_with('[') => format!("{at}{below}"),
            below => child(&at, below),
        };
        let whole = matches!(rules.ty.as_str(), "object" | "array");
        let cause = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => field::forbidden(at, &detail),
            Some("FieldValueRequired") => field::required(at, &detail),
            Some("FieldValueDuplicate") if whole => field::duplicate_hidden(at),
            Some("FieldValueDuplicate") => field::duplicate(at, value),
            _ if whole => field::invalid_hidden(at, &detail),
            _ => field::invalid(at, value, &detail),
        };
        if !compiled.uses_old && pairing.is_unchanged() {
            let warning = format!("{}: {}", cause.field, cause.message);
            self.found(warning.len());
            self.warnings.push(warning);
        } else {
            self.add(cause);
        }
    }

    fn add(&mut self, cause: Cause) {
        self.found(cause.field.len() + cause.message.len());
        self.causes.push(cause);
    }

    /// So much text was found: there is a bound, beyond which no rule is run.
    fn found(&mut self, length: usize) {
        self.length += length;
        self.spent |= self.length > MOST_TEXT;
    }

    /// What a failed rule says: what its expression makes, or its message, or the rule itself.
    fn message(&mut self, compiled: &Compiled, variables: &[(&str, CelValue)]) -> String {
        let made = compiled.message.as_ref().and_then(|message| {
            let made = self.pay(message, variables);
            match made {
                Ok(CelValue::String(text)) => {
                    let text = text.trim().to_owned();
                    let fits =
                        !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                    fits.then_some(text)
                }
                _ => None,
            }
        });
        let rule = &compiled.rule;
        made.unwrap_or_else(|| {
            if rule.message.is_empty() {
                format!("failed rule: {}", rule.rule.trim())
            } else {
                rule.message.trim().to_owned()
            }
        })
    }
}
