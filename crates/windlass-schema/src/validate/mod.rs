//! Checks a custom object against its schema, with the sentences and causes of kube-apiserver.
//!
//! Every check of a schema is made, whatever the others said; of the alternatives of `anyOf` and
//! `oneOf` the one that came closest tells what is wrong. What has not changed since before an
//! update is not complained about.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::format;
use super::path::child;
use super::ratchet::Correlated;
use super::schema::{AdditionalProperties, Schema};
use windlass_apimachinery::field::{self, Cause};
use windlass_apimachinery::findings::MOST_TEXT;
use windlass_apimachinery::go;
use windlass_apimachinery::place::Place;
use windlass_apimachinery::steps::{step, steps};

/// Every way in which a value is not what its schema asks for. Its causes are told below `at`.
pub(super) fn check(
    value: &Value,
    schema: &Schema,
    at: &str,
    before: Option<Correlated<'_>>,
) -> Vec<Cause> {
    let mut check = Check {
        at,
        room: MOST_TEXT,
    };
    let outcome = check.value(value, schema, &Place::Root, before);
    let mut causes: Vec<Cause> = outcome.issues.into_iter().map(|(_, cause)| cause).collect();
    if causes.is_empty() && outcome.more {
        let why = "has more errors than can be reported";
        causes.push(field::invalid(super::path::shown(at), &"".into(), why));
    }
    causes
}

/// What checking found, and how much of it was fine, by which alternatives are compared.
#[derive(Default)]
struct Outcome {
    /// What Go would say, by which the same is said once, and the cause.
    issues: Vec<(String, Cause)>,
    seen: HashSet<String>,
    /// There is more, which was not put into words: there was too much of it.
    more: bool,
    /// Something that was complained about has changed, so this has, too.
    changed: bool,
    fine: usize,
}

impl Outcome {
    fn is_valid(&self) -> bool {
        self.issues.is_empty() && !self.more
    }

    fn add(&mut self, said: String, cause: Cause) {
        if self.seen.insert(said.clone()) {
            self.issues.push((said, cause));
        }
    }

    fn merge(&mut self, other: Self) {
        self.fine += other.fine;
        self.more |= other.more;
        self.changed |= other.changed;
        if self.issues.is_empty() {
            self.issues = other.issues;
            self.seen = other.seen;
            return;
        }
        for (said, cause) in other.issues {
            self.add(said, cause);
        }
    }
}

struct Check<'a> {
    at: &'a str,
    /// How much text may still be written about what is wrong. Its paths are as long as the client
    /// makes them, and what is wrong as much.
    room: usize,
}

impl Check<'_> {
    /// Puts into words what is wrong: with the name of the value, and the field to report.
    fn report(
        &mut self,
        name: &Place<'_>,
        outcome: &mut Outcome,
        say: impl FnOnce(&str, String) -> (String, Cause),
    ) {
        if self.room == 0 {
            outcome.more = true;
            return;
        }
        let name = name.path();
        let field = match name.trim_start_matches('.') {
            "" => super::path::shown(self.at),
            name => child(self.at, name),
        };
        let (said, cause) = say(&name, field);
        let length = said.len() + cause.field.len() + cause.message.len();
        steps(length);
        self.room = self.room.saturating_sub(length);
        outcome.add(said, cause);
    }

    fn value(
        &mut self,
        value: &Value,
        schema: &Schema,
        name: &Place<'_>,
        before: Option<Correlated<'_>>,
    ) -> Outcome {
        step();
        let mut outcome = self.validators(value, schema, name, before);
        if let Some(before) = before
            && !outcome.is_valid()
            && !outcome.changed
        {
            if before.is_unchanged() {
                outcome.issues.clear();
                outcome.seen.clear();
                outcome.more = false;
            } else {
                outcome.changed = true;
            }
        }
        outcome
    }

    fn validators(
        &mut self,
        value: &Value,
        schema: &Schema,
        name: &Place<'_>,
        before: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let format = if format::is_known(&schema.format, &schema.ty) {
            schema.format.as_str()
        } else {
            ""
        };
        self.ty(value, schema, format, name, &mut outcome);
        if value.is_null() {
            self.listed(value, schema, name, &mut outcome);
            return outcome;
        }
        self.logic(value, schema, name, &mut outcome);
        match value {
            Value::String(text) => {
                self.text(text, schema, name, &mut outcome);
                if !format.is_empty() && !format::fits(format, text) {
                    self.report(name, &mut outcome, |name, field| {
                        let said = format!("{name} in body must be of type {format}: {value}");
                        let cause = field::type_invalid(field, &value.to_string(), &said);
                        (said, cause)
                    });
                }
            }
            Value::Number(_) => self.number(value, schema, format, name, &mut outcome),
            Value::Array(items) => self.list(items, schema, name, before, &mut outcome),
            _ => {}
        }
        self.listed(value, schema, name, &mut outcome);
        if let Value::Object(map) = value {
            self.object(map, schema, name, before, &mut outcome);
        }
        outcome.fine += 5;
        outcome
    }

    /// What is wrong with a value itself: `{name} in body {why}`.
    fn invalid(&mut self, name: &Place<'_>, value: &Value, why: &str, outcome: &mut Outcome) {
        self.report(name, outcome, |name, field| {
            let said = format!("{name} in body {why}");
            let cause = field::invalid(field, value, &said);
            (said, cause)
        });
    }

    /// What is wrong with a value as a whole, which is not reported of a field.
    fn composite(
        &mut self,
        name: &Place<'_>,
        outcome: &mut Outcome,
        say: impl FnOnce(&str) -> String,
    ) {
        let whole = super::path::shown(self.at);
        self.report(name, outcome, |name, _| {
            let said = say(name);
            let cause = field::invalid(whole, &"".into(), &said);
            (said, cause)
        });
    }

    fn ty(
        &mut self,
        value: &Value,
        schema: &Schema,
        format: &str,
        name: &Place<'_>,
        outcome: &mut Outcome,
    ) {
        let wanted: &[&str] = match schema.ty.as_str() {
            _ if schema.int_or_string => &["integer", "string"],
            "" => &[],
            ty => &[ty],
        };
        if wanted.is_empty() && format.is_empty() {
            return;
        }
        let found = type_name(value);
        let wants = |ty: &str| wanted.contains(&ty);
        let fits = match value {
            Value::Null => wanted.is_empty() || schema.nullable,
            // A text or list where a format is asked for is told of by the format.
            Value::String(_) | Value::Array(_)
                if !format.is_empty() && !wants("number") && !wants("integer") =>
            {
                true
            }
            Value::Number(number) if found == "number" => {
                let is_whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
                wants("number") || (is_whole && wants("integer"))
            }
            Value::Number(_) => wants("integer") || wants("number"),
            _ => wants(found),
        };
        if fits {
            outcome.fine += 1;
            return;
        }
        // With a format, that is what is asked for, and what a number is said to have.
        let is_text = value.is_string() || value.is_array() || value.is_null();
        let (wanted, found) = if format.is_empty() || is_text {
            (wanted.join(","), found)
        } else {
            let has = match found {
                "integer" => "int64",
                "number" => "float64",
                _ => "",
            };
            (format.to_owned(), has)
        };
        self.report(name, outcome, |name, field| {
            let said = format!("{name} in body must be of type {wanted}: \"{found}\"");
            let cause = field::type_invalid(field, &format!("\"{found}\""), &said);
            (said, cause)
        });
    }

    fn logic(&mut self, value: &Value, schema: &Schema, name: &Place<'_>, outcome: &mut Outcome) {
        let quoted = |name: &str| Value::from(name);
        if !schema.any_of.is_empty() {
            let found = self.closest(value, &schema.any_of, name);
            match found.valid {
                0 => {
                    self.composite(name, outcome, |name| {
                        let name = quoted(name);
                        format!("{name} must validate at least one schema (anyOf)")
                    });
                    outcome.merge(found.closest);
                }
                _ => outcome.fine += found.fine,
            }
        }
        if !schema.one_of.is_empty() {
            let found = self.closest(value, &schema.one_of, name);
            let (count, was) = (found.valid, found.fine);
            if count == 1 {
                outcome.fine += was;
            } else {
                let why = match count {
                    0 => "Found none valid".to_owned(),
                    count => format!("Found {count} valid alternatives"),
                };
                self.composite(name, outcome, |name| {
                    let name = quoted(name);
                    format!("{name} must validate one and only one schema (oneOf). {why}")
                });
                if count == 0 {
                    outcome.merge(found.closest);
                }
            }
        }
        if !schema.all_of.is_empty() {
            let mut valid = 0;
            for inner in &schema.all_of {
                let found = self.value(value, inner, name, None);
                valid += usize::from(found.is_valid());
                outcome.merge(found);
            }
            if valid != schema.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                self.composite(name, outcome, |name| {
                    let name = quoted(name);
                    format!("{name} must validate all the schemas (allOf){none}")
                });
            }
        }
        if let Some(inner) = &schema.not
            && self.value(value, inner, name, None).is_valid()
        {
            self.composite(name, outcome, |name| {
                format!("{} must not validate the schema (not)", quoted(name))
            });
        }
        outcome.fine += 1;
    }

    fn closest(&mut self, value: &Value, schemas: &[Schema], name: &Place<'_>) -> Alternatives {
        let mut found = Alternatives::default();
        let mut any_failed = false;
        for schema in schemas {
            let outcome = self.value(value, schema, name, None);
            if outcome.is_valid() {
                found.valid += 1;
                found.fine = found.fine.max(outcome.fine);
            } else if !any_failed || outcome.fine > found.closest.fine {
                any_failed = true;
                found.closest = outcome;
            }
        }
        found
    }

    fn text(&mut self, text: &str, schema: &Schema, name: &Place<'_>, outcome: &mut Outcome) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        // Of a text only the first thing that is wrong is told.
        if let Some(max) = schema.max_length.filter(|max| length > *max) {
            self.report(name, outcome, |name, field| {
                let said = format!("{name} in body should be at most {max} chars long");
                let max = u64::try_from(max).unwrap_or(0);
                (said, field::too_long(field, max))
            });
        } else if let Some(min) = schema.min_length.filter(|min| length < *min) {
            let why = format!("should be at least {min} chars long");
            self.invalid(name, &text.into(), &why, outcome);
        } else if !schema.pattern_fits(text) {
            let why = format!("should match '{}'", schema.pattern);
            self.invalid(name, &text.into(), &why, outcome);
        }
    }

    fn number(
        &mut self,
        value: &Value,
        schema: &Schema,
        format: &str,
        name: &Place<'_>,
        outcome: &mut Outcome,
    ) {
        let ty = if schema.int_or_string {
            ""
        } else {
            schema.ty.as_str()
        };
        let number = value.as_f64().unwrap_or_default();
        let mut in_range = |number: f64, what: &str| {
            let fits = match (ty, format) {
                ("integer", "int32") => {
                    number.fract() == 0.0
                        && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
                }
                ("integer", _) => number.fract() == 0.0 && number.abs() <= 9.3e18,
                ("number", "float") => number.abs() <= f64::from(f32::MAX),
                _ => true,
            };
            if !fits {
                let of = match format {
                    "" => format!("{ty} (default format)"),
                    format => format!("{ty} with format {format}"),
                };
                self.composite(name, outcome, |name| {
                    format!("{what} value must be of type {of} in {name}")
                });
            }
            fits
        };
        in_range(number, "Checked");
        // A whole number is compared with the whole part of a bound.
        let whole = value.as_i64();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "Go truncates the bound, too"
        )]
        let bound = |bound: f64, in_range: bool| match whole {
            Some(number) if in_range => {
                let bound = bound as i64;
                (number.cmp(&bound), bound.to_string())
            }
            _ => {
                let order = number.partial_cmp(&bound);
                let order = order.unwrap_or(std::cmp::Ordering::Equal);
                (order, go::float(bound))
            }
        };
        let mut said = Vec::new();
        if let Some(factor) = schema.multiple_of {
            let fits = in_range(factor, "MultipleOf");
            #[allow(clippy::cast_possible_truncation, reason = "Go truncates it, too")]
            let is_multiple = match whole {
                _ if factor <= 0.0 => true,
                Some(number) if fits && factor as i64 > 0 => number % (factor as i64) == 0,
                _ if factor < 1.0 => is_whole(1.0 / factor * number),
                _ => is_whole(number / factor),
            };
            if !is_multiple {
                said.push(format!("should be a multiple of {}", go::float(factor)));
            }
        }
        if let Some(minimum) = schema.minimum {
            let (order, shown) = bound(minimum, in_range(minimum, "Minimum boundary"));
            if schema.exclusive_minimum && order.is_le() {
                said.push(format!("should be greater than {shown}"));
            } else if order.is_lt() {
                said.push(format!("should be greater than or equal to {shown}"));
            }
        }
        if let Some(maximum) = schema.maximum {
            let (order, shown) = bound(maximum, in_range(maximum, "Maximum boundary"));
            if schema.exclusive_maximum && order.is_ge() {
                said.push(format!("should be less than {shown}"));
            } else if order.is_gt() {
                said.push(format!("should be less than or equal to {shown}"));
            }
        }
        for said in said {
            self.invalid(name, value, &said, outcome);
        }
        outcome.fine += 1;
    }

    fn list(
        &mut self,
        items: &[Value],
        schema: &Schema,
        name: &Place<'_>,
        before: Option<Correlated<'_>>,
        outcome: &mut Outcome,
    ) {
        if let Some(inner) = schema.item() {
            let paired = before.map(Correlated::items);
            for (place, item) in items.iter().enumerate() {
                let before = paired.as_ref().and_then(|paired| paired.at(place));
                let inner_name = Place::Item(name, place);
                outcome.merge(self.value(item, inner, &inner_name, before));
            }
        }
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_items.filter(|min| count < *min) {
            let why = format!("should have at least {min} items");
            self.invalid(name, &count.into(), &why, outcome);
        }
        if let Some(max) = schema.max_items.filter(|max| count > *max) {
            self.report(name, outcome, |name, field| {
                let said = format!("{name} in body should have at most {max} items");
                let max = u64::try_from(max).unwrap_or(0);
                (said, field::too_many(field, items.len(), max))
            });
        }
        outcome.fine += 1;
    }

    fn listed(&mut self, value: &Value, schema: &Schema, name: &Place<'_>, outcome: &mut Outcome) {
        if schema.allowed.is_empty() || schema.allowed.iter().any(|one| same(one, value)) {
            return;
        }
        self.report(name, outcome, |name, field| {
            let allowed: Vec<String> = schema
                .allowed
                .iter()
                .map(|one| match one {
                    Value::String(_) => one.to_string(),
                    other => Value::from(other.to_string()).to_string(),
                })
                .collect();
            let cause = field::not_supported(field, value, &allowed);
            (
                format!("{name} in body should be one of {allowed:?}"),
                cause,
            )
        });
    }

    fn object(
        &mut self,
        map: &Map<String, Value>,
        schema: &Schema,
        name: &Place<'_>,
        before: Option<Correlated<'_>>,
        outcome: &mut Outcome,
    ) {
        let count = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_properties.filter(|min| count < *min) {
            let why = format!("should have at least {min} properties");
            self.invalid(name, &count.into(), &why, outcome);
        }
        if let Some(max) = schema.max_properties.filter(|max| count > *max) {
            self.report(name, outcome, |name, field| {
                let said = format!("{name} in body should have at most {max} properties");
                let max = u64::try_from(max).unwrap_or(0);
                (said, field::too_many(field, map.len(), max))
            });
        }
        let is_root = name.is_empty() && self.at.is_empty();
        let pair = |field: &str| {
            let is_type = is_root && matches!(field, "kind" | "apiVersion");
            before.filter(|_| !is_type)?.key(field)
        };
        for (field, value) in map {
            if schema.properties.contains_key(field) {
                continue;
            }
            match &schema.additional_properties {
                Some(AdditionalProperties::Allowed(false)) => {
                    self.report(name, outcome, |name, at| {
                        let said = format!("{name}.{field} in body is a forbidden property");
                        let cause = field::invalid(at, &field.as_str().into(), &said);
                        (said, cause)
                    });
                }
                Some(AdditionalProperties::Of(values)) => {
                    let inner = Place::Dotted(name, field);
                    outcome.merge(self.value(value, values, &inner, pair(field)));
                }
                _ => {}
            }
        }
        for (field, property) in &schema.properties {
            if let Some(value) = map.get(field) {
                let inner = Place::Field(name, field);
                outcome.merge(self.value(value, property, &inner, pair(field)));
            }
        }
        for missing in schema
            .required
            .iter()
            .filter(|field| !map.contains_key(*field))
        {
            self.report(&Place::Dotted(name, missing), outcome, |missing, field| {
                let cause = field::required(field, "");
                (format!("{missing} in body is required"), cause)
            });
        }
    }
}

#[derive(Default)]
struct Alternatives {
    valid: usize,
    /// How much was fine with the best of those that are valid.
    fine: usize,
    /// Of those that are not, the one with most that is fine.
    closest: Outcome,
}

fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-9
}

/// Equal, where 1 and 1.0 are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
