//! Objects and lists.

use serde_json::{Map, Value};

use super::problem::{Problem, because, count, joined, problem, quote};
use super::scalar::equal;
use super::{Path, Seen, Validator, list, size, table, texts};

impl<'a> Validator<'a> {
    pub(super) fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &Map<String, Value>,
        value: &Value,
        path: &mut Path,
        seen: &mut Seen,
        errors: &mut Vec<Problem>,
    ) {
        for (name, is_wrong) in [("minProperties", false), ("maxProperties", true)] {
            if let Some(limit) = size(schema, name)
                && if is_wrong {
                    object.len() > limit
                } else {
                    object.len() < limit
                }
            {
                let message = format!("{name}: got {}, want {}", count(object.len()), count(limit));
                errors.push(problem(path, message));
            }
        }
        let missing = |names: Vec<&'a str>| -> Vec<&'a str> {
            names
                .into_iter()
                .filter(|name| !object.contains_key(*name))
                .collect()
        };
        let required = match schema.get("required") {
            required @ Some(Value::Array(_)) => missing(texts(required)),
            _ => Vec::new(),
        };
        match required.as_slice() {
            [] => {}
            [one] => errors.push(problem(path, format!("missing property {}", quote(one)))),
            all => errors.push(problem(
                path,
                format!("missing properties {}", joined(all.iter().copied())),
            )),
        }
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            for (name, wanted) in table(schema, keyword) {
                if !object.contains_key(name) {
                    continue;
                }
                if wanted.is_array() {
                    let missing = missing(texts(Some(wanted)));
                    if !missing.is_empty() {
                        let message = format!(
                            "properties {} required, if {} exists",
                            joined(missing),
                            quote(name)
                        );
                        errors.push(problem(path, message));
                    }
                } else {
                    match self.schema(wanted, value, path) {
                        Ok(more) => seen.merge(more),
                        Err(error) => errors.push(error),
                    }
                }
            }
        }
        self.properties(schema, object, path, seen, errors);
        if let Some(names) = schema.get("propertyNames").filter(|_| self.draft > 4) {
            for name in object.keys() {
                if let Err(error) =
                    self.schema(names, &Value::String(name.clone()), &mut Vec::new())
                {
                    let causes = if error.group {
                        error.causes
                    } else {
                        vec![error]
                    };
                    let message = format!("invalid propertyName {}", quote(name));
                    errors.push(because(path, &message, causes));
                }
            }
        }
    }

    fn properties(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &Map<String, Value>,
        path: &mut Path,
        seen: &mut Seen,
        errors: &mut Vec<Problem>,
    ) {
        let mut patterns = Vec::new();
        for (pattern, inner) in table(schema, "patternProperties") {
            match windlass_regexp::compile(pattern) {
                Ok(regex) => patterns.push((regex, inner)),
                Err(why) => {
                    self.refused.get_or_insert(why.to_string());
                }
            }
        }
        let own = schema.get("properties").and_then(Value::as_object);
        let mut additional = Vec::new();
        for (name, value) in object {
            let mut schemas: Vec<&'a Value> =
                own.and_then(|own| own.get(name)).into_iter().collect();
            schemas.extend(
                patterns
                    .iter()
                    .filter(|(regex, _)| regex.is_match(name))
                    .map(|(_, inner)| *inner),
            );
            if schemas.is_empty() {
                match schema.get("additionalProperties") {
                    None => continue,
                    Some(Value::Bool(false)) => additional.push(name.as_str()),
                    Some(inner) => schemas.push(inner),
                }
            }
            seen.properties.insert(name.clone());
            path.push(name.clone());
            for inner in schemas {
                errors.extend(self.schema(inner, value, path).err());
            }
            path.pop();
        }
        if !additional.is_empty() {
            let message = format!("additional properties {} not allowed", joined(additional));
            errors.push(problem(path, message));
        }
    }

    pub(super) fn array(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        path: &mut Path,
        seen: &mut Seen,
        errors: &mut Vec<Problem>,
    ) {
        for (name, is_wrong) in [("minItems", false), ("maxItems", true)] {
            if let Some(limit) = size(schema, name)
                && if is_wrong {
                    items.len() > limit
                } else {
                    items.len() < limit
                }
            {
                let message = format!("{name}: got {}, want {}", count(items.len()), count(limit));
                errors.push(problem(path, message));
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.steps += items.len() * items.len() / 16;
            let twins = (0..items.len().min(2000)).find_map(|first| {
                ((first + 1)..items.len().min(2000))
                    .find(|second| equal(&items[first], &items[*second]))
                    .map(|second| (first, second))
            });
            if let Some((first, second)) = twins {
                errors.push(problem(
                    path,
                    format!("items at {first} and {second} are equal"),
                ));
            }
        }
        let (prefix, rest) = if self.draft < 2020 {
            match schema.get("items") {
                Some(Value::Array(prefix)) => (prefix.as_slice(), schema.get("additionalItems")),
                rest => (&[][..], rest),
            }
        } else {
            (list(schema, "prefixItems"), schema.get("items"))
        };
        for (index, item) in items.iter().enumerate() {
            let Some(inner) = prefix.get(index).or(rest) else {
                continue;
            };
            if index >= prefix.len() && *inner == Value::Bool(false) && self.draft < 2020 {
                let extra = count(items.len() - prefix.len());
                errors.push(problem(
                    path,
                    format!("last {extra} additionalItem(s) not allowed"),
                ));
                break;
            }
            seen.items.insert(index);
            path.push(index.to_string());
            errors.extend(self.schema(inner, item, path).err());
            path.pop();
        }
        self.contains(schema, items, path, seen, errors);
    }

    fn contains(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        path: &mut Path,
        seen: &mut Seen,
        errors: &mut Vec<Problem>,
    ) {
        let Some(wanted) = schema.get("contains").filter(|_| self.draft > 4) else {
            return;
        };
        let mut causes = Vec::new();
        let mut matched = Vec::new();
        for (index, item) in items.iter().enumerate() {
            path.push(index.to_string());
            match self.schema(wanted, item, path) {
                Ok(_) => matched.push(index),
                Err(error) => causes.push(error),
            }
            path.pop();
        }
        if self.draft >= 2020 {
            seen.items.extend(&matched);
        }
        let places: Vec<String> = matched.iter().map(usize::to_string).collect();
        let places = places.join(" ");
        match size(schema, "minContains") {
            Some(least) if matched.len() < least => {
                let message = if matched.is_empty() {
                    format!("min {least} items required to match contains schema, but none matched")
                } else {
                    format!(
                        "min {least} items required to match contains schema, but matched {} items at {places}",
                        matched.len()
                    )
                };
                errors.push(because(path, &message, causes));
            }
            None if matched.is_empty() => {
                errors.push(because(path, "no items match contains schema", causes));
            }
            _ => {}
        }
        if let Some(most) = size(schema, "maxContains")
            && matched.len() > most
        {
            let message = format!(
                "max {most} items required to match contains schema, but matched {} items at {places}",
                matched.len()
            );
            errors.push(problem(path, message));
        }
    }
}
