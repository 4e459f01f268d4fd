//! Schemas made of several others, and what none of them looked at.

use serde_json::{Map, Value};

use super::problem::{Problem, because, problem};
use super::{Path, Seen, Validator, list};

impl<'a> Validator<'a> {
    pub(super) fn conditions(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &mut Path,
        seen: &mut Seen,
        errors: &mut Vec<Problem>,
    ) {
        if let Some(not) = schema.get("not")
            && self.schema(not, value, path).is_ok()
        {
            errors.push(problem(path, "'not' failed"));
        }
        let mut causes = Vec::new();
        for inner in list(schema, "allOf") {
            match self.schema(inner, value, path) {
                Ok(more) => seen.merge(more),
                Err(error) => causes.push(error),
            }
        }
        if !causes.is_empty() {
            errors.push(because(path, "'allOf' failed", causes));
        }
        let any = list(schema, "anyOf");
        let mut causes = Vec::new();
        let mut matched = any.is_empty();
        for inner in any {
            match self.schema(inner, value, path) {
                Ok(more) => {
                    seen.merge(more);
                    matched = true;
                }
                Err(error) => causes.push(error),
            }
        }
        if !matched {
            errors.push(because(path, "'anyOf' failed", causes));
        }
        self.one_of(list(schema, "oneOf"), value, path, seen, errors);
        if let Some(condition) = schema.get("if").filter(|_| self.draft >= 7) {
            let next = match self.schema(condition, value, path) {
                Ok(more) => {
                    seen.merge(more);
                    schema.get("then")
                }
                Err(_) => schema.get("else"),
            };
            if let Some(next) = next {
                match self.schema(next, value, path) {
                    Ok(more) => seen.merge(more),
                    Err(error) => errors.push(error),
                }
            }
        }
    }

    fn one_of(
        &mut self,
        one: &'a [Value],
        value: &Value,
        path: &mut Path,
        seen: &mut Seen,
        errors: &mut Vec<Problem>,
    ) {
        let mut causes = Vec::new();
        let mut matched = None;
        for (index, inner) in one.iter().enumerate() {
            match (self.schema(inner, value, path), matched) {
                (Ok(more), None) => {
                    seen.merge(more);
                    matched = Some(index);
                }
                (Ok(_), Some(first)) => {
                    let message = format!("'oneOf' failed, subschemas {first}, {index} matched");
                    errors.push(problem(path, message));
                    return;
                }
                (Err(error), None) => causes.push(error),
                (Err(_), Some(_)) => {}
            }
        }
        if matched.is_none() && !one.is_empty() {
            errors.push(because(path, "'oneOf' failed, none matched", causes));
        }
    }

    pub(super) fn unevaluated(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &mut Path,
        seen: &mut Seen,
        errors: &mut Vec<Problem>,
    ) {
        if self.draft < 2019 {
            return;
        }
        match (
            value,
            schema.get("unevaluatedProperties"),
            schema.get("unevaluatedItems"),
        ) {
            (Value::Object(object), Some(inner), _) => {
                for (name, value) in object {
                    if seen.properties.insert(name.clone()) {
                        path.push(name.clone());
                        errors.extend(self.schema(inner, value, path).err());
                        path.pop();
                    }
                }
            }
            (Value::Array(items), _, Some(inner)) => {
                for (index, item) in items.iter().enumerate() {
                    if seen.items.insert(index) {
                        path.push(index.to_string());
                        errors.extend(self.schema(inner, item, path).err());
                        path.pop();
                    }
                }
            }
            _ => {}
        }
    }
}
