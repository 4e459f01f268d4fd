//! `values.schema.json`: JSON Schema, drafts 4 to 2020-12, with the messages that Helm prints.
//!
//! References lead to places within the schema; one that leads elsewhere is refused, because
//! rendering reads no file and sends no request.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::number;
use crate::values::Values;

/// How deeply schemas may refer to one another.
const MAX_DEPTH: usize = 200;
/// How many schemas may be looked at for one chart.
const MAX_STEPS: usize = 500_000;

/// Says what is wrong with values, chart by chart.
pub(crate) fn validate(chart: &Chart, values: &Values) -> Result<(), String> {
    let mut problems = String::new();
    collect(chart, values, &mut problems);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn collect(chart: &Chart, values: &Values, problems: &mut String) {
    if let Some(schema) = &chart.schema
        && let Err(why) = validate_one(schema, values)
    {
        problems.push_str(&format!("{}:\n{why}", chart.name()));
    }
    for dependency in &chart.dependencies {
        match values.get(dependency.name()) {
            None | Some(Value::Null) => {}
            Some(Value::Object(inner)) => collect(dependency, inner, problems),
            Some(other) => {
                let found = crate::template::value::Value::from(other);
                problems.push_str(&format!(
                    "{}:\ninvalid type for values: expected object (map), got {}\n",
                    dependency.name(),
                    found.type_name()
                ));
            }
        }
    }
}

fn validate_one(schema: &[u8], values: &Values) -> Result<(), String> {
    let root: Value = serde_json::from_slice(schema).map_err(|error| error.to_string())?;
    let draft = match root.get("$schema").and_then(Value::as_str) {
        Some(url) if url.contains("draft-04") => 4,
        Some(url) if url.contains("draft-06") => 6,
        Some(url) if url.contains("draft-07") => 7,
        Some(url) if url.contains("2019-09") => 2019,
        _ => 2020,
    };
    let mut validator = Validator {
        root: &root,
        draft,
        steps: 0,
        depth: 0,
        refused: None,
    };
    let value = Value::Object(values.clone());
    let result = validator.schema(&root, &value, &mut Vec::new());
    if let Some(why) = validator.refused {
        return Err(why);
    }
    match result {
        Ok(_) => Ok(()),
        Err(problem) => {
            let causes = if problem.group {
                problem.causes
            } else {
                vec![problem]
            };
            let mut text = String::new();
            for cause in &causes {
                cause.show(1, &mut text);
            }
            Err(format!("{}\n", text.trim_start_matches('\n')))
        }
    }
}

/// What is wrong with a value, and why.
struct Problem {
    at: String,
    message: String,
    causes: Vec<Problem>,
    group: bool,
    reference: bool,
}

impl Problem {
    fn show(&self, indent: usize, out: &mut String) {
        let mut deeper = indent;
        if !(self.reference && self.causes.len() == 1) {
            out.push('\n');
            out.push_str(&"  ".repeat(indent - 1));
            out.push_str(&format!("- at {}: {}", quote(&self.at), self.message));
            deeper += 1;
        }
        for cause in &self.causes {
            cause.show(deeper, out);
        }
    }
}

/// What of a value was looked at.
#[derive(Default)]
struct Seen {
    properties: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Seen {
    fn merge(&mut self, other: Self) {
        self.properties.extend(other.properties);
        self.items.extend(other.items);
    }
}

struct Validator<'a> {
    root: &'a Value,
    draft: u32,
    steps: usize,
    depth: usize,
    /// Why the schema cannot be used.
    refused: Option<String>,
}

type Path = Vec<String>;
type Validated = Result<Seen, Problem>;

fn quote(text: &str) -> String {
    let quoted = crate::quote::quote(text.as_bytes());
    let inner = &quoted[1..quoted.len() - 1];
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}

fn joined<'t>(names: impl IntoIterator<Item = &'t str>) -> String {
    names.into_iter().map(quote).collect::<Vec<_>>().join(", ")
}

fn pointer(path: &Path) -> String {
    path.iter()
        .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")))
        .collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        other => crate::json::kind(other),
    }
}

/// A number as it is printed for people: in groups of three digits.
fn grouped(value: f64) -> String {
    let text = number::format_f(value, None);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if fraction.is_empty() {
        format!("{sign}{out}")
    } else {
        format!("{sign}{out}.{fraction}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn count(count: usize) -> String {
    grouped(count as f64)
}

fn display(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Null => "<nil>".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => vec![text],
        _ => Vec::new(),
    }
}

fn list<'v>(schema: &'v Map<String, Value>, name: &str) -> &'v [Value] {
    schema
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn table<'v>(schema: &'v Map<String, Value>, name: &str) -> Vec<(&'v String, &'v Value)> {
    match schema.get(name) {
        Some(Value::Object(table)) => table.iter().collect(),
        _ => Vec::new(),
    }
}

fn size(schema: &Map<String, Value>, name: &str) -> Option<usize> {
    let value = schema.get(name)?.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    (value >= 0.0).then_some(value as usize)
}

fn problem(path: &Path, message: impl Into<String>) -> Problem {
    Problem {
        at: pointer(path),
        message: message.into(),
        causes: Vec::new(),
        group: false,
        reference: false,
    }
}

fn because(path: &Path, message: &str, causes: Vec<Problem>) -> Problem {
    Problem {
        causes,
        ..problem(path, message)
    }
}

impl<'a> Validator<'a> {
    fn schema(&mut self, schema: &'a Value, value: &Value, path: &mut Path) -> Validated {
        self.steps += 1;
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH || self.steps > MAX_STEPS {
            self.refused
                .get_or_insert_with(|| "the schema refers to itself too often".to_owned());
            Ok(Seen::default())
        } else {
            match schema {
                Value::Bool(false) => Err(problem(path, "false schema")),
                Value::Object(schema) => self.object_schema(schema, value, path),
                _ => Ok(Seen::default()),
            }
        };
        self.depth -= 1;
        result
    }

    fn object_schema(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &mut Path,
    ) -> Validated {
        let mut errors = Vec::new();
        let mut seen = Seen::default();
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference
            && self.draft < 2019
        {
            return self.reference(target, value, path);
        }
        if let Some(early) = simple(schema, value, path, self.draft) {
            return Err(early);
        }
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(target) = schema.get(name).and_then(Value::as_str) {
                match self.reference(target, value, path) {
                    Ok(more) => seen.merge(more),
                    Err(error) => errors.push(error),
                }
            }
        }
        match value {
            Value::Object(object) => {
                self.object(schema, object, value, path, &mut seen, &mut errors);
            }
            Value::Array(items) => self.array(schema, items, path, &mut seen, &mut errors),
            Value::String(text) => self.string(schema, text, path, &mut errors),
            Value::Number(number) => {
                numeric(
                    schema,
                    number.as_f64().unwrap_or_default(),
                    path,
                    &mut errors,
                );
            }
            _ => {}
        }
        self.conditions(schema, value, path, &mut seen, &mut errors);
        self.unevaluated(schema, value, path, &mut seen, &mut errors);
        if errors.len() > 1 {
            return Err(Problem {
                group: true,
                ..because(path, "validation failed", errors)
            });
        }
        match errors.pop() {
            Some(error) => Err(error),
            None => Ok(seen),
        }
    }

    fn reference(&mut self, target: &str, value: &Value, path: &mut Path) -> Validated {
        let Some(found) = self.resolve(target) else {
            self.refused.get_or_insert_with(|| {
                format!(
                    "cannot resolve the reference {} of the schema",
                    quote(target)
                )
            });
            return Ok(Seen::default());
        };
        self.schema(found, value, path).map_err(|error| Problem {
            reference: true,
            causes: if error.group {
                error.causes
            } else {
                vec![error]
            },
            ..problem(path, format!("validation failed with {}", quote(target)))
        })
    }

    /// The schema that a reference leads to.
    fn resolve(&self, target: &str) -> Option<&'a Value> {
        let base = self.root.get("$id").and_then(Value::as_str).unwrap_or("");
        let (url, fragment) = target.split_once('#').unwrap_or((target, ""));
        let is_own =
            url.is_empty() || url == base.trim_end_matches('#') || url == "values.schema.json";
        if !is_own {
            return find(self.root, &|schema| {
                schema.get("$id").and_then(Value::as_str).is_some_and(|id| {
                    id.trim_end_matches('#') == url
                        || id.rsplit('/').next() == url.rsplit('/').next() && !id.starts_with('#')
                })
            });
        }
        if fragment.is_empty() {
            return Some(self.root);
        }
        if fragment.starts_with('/') {
            let decoded = fragment.replace("%25", "%").replace("%22", "\"");
            return self.root.pointer(&decoded);
        }
        let anchor = format!("#{fragment}");
        find(self.root, &|schema| {
            let is =
                |name: &str, wanted: &str| schema.get(name).and_then(Value::as_str) == Some(wanted);
            is("$anchor", fragment)
                || is("$dynamicAnchor", fragment)
                || is("$id", &anchor)
                || is("id", &anchor)
        })
    }

    fn object(
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

    fn array(
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

    fn string(
        &mut self,
        schema: &Map<String, Value>,
        text: &str,
        path: &Path,
        errors: &mut Vec<Problem>,
    ) {
        let length = text.chars().count();
        for (name, is_wrong) in [("minLength", false), ("maxLength", true)] {
            if let Some(limit) = size(schema, name)
                && if is_wrong {
                    length > limit
                } else {
                    length < limit
                }
            {
                let message = format!("{name}: got {}, want {}", count(length), count(limit));
                errors.push(problem(path, message));
            }
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            match windlass_regexp::compile(pattern) {
                Ok(regex) if !regex.is_match(text) => {
                    let message =
                        format!("{} does not match pattern {}", quote(text), quote(pattern));
                    errors.push(problem(path, message));
                }
                Ok(_) => {}
                Err(why) => {
                    self.refused.get_or_insert(why.to_string());
                }
            }
        }
    }

    fn conditions(
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

    fn unevaluated(
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

/// The first schema within another that is the one meant.
fn find<'v>(value: &'v Value, is: &dyn Fn(&Map<String, Value>) -> bool) -> Option<&'v Value> {
    match value {
        Value::Object(object) if is(object) => Some(value),
        Value::Object(object) => object.values().find_map(|inner| find(inner, is)),
        Value::Array(items) => items.iter().find_map(|inner| find(inner, is)),
        _ => None,
    }
}

/// What is wrong with a value so that nothing else is looked at.
fn simple(schema: &Map<String, Value>, value: &Value, path: &Path, draft: u32) -> Option<Problem> {
    let types = texts(schema.get("type"));
    if !types.is_empty() {
        let found = kind(value);
        let is_int = value.as_f64().is_some_and(|float| float.fract() == 0.0);
        let matches = types
            .iter()
            .any(|wanted| *wanted == found || (*wanted == "integer" && is_int));
        if !matches {
            return Some(problem(
                path,
                format!("got {found}, want {}", types.join(" or ")),
            ));
        }
    }
    if let Some(wanted) = schema.get("const").filter(|_| draft > 4)
        && !equal(value, wanted)
    {
        let message = match wanted {
            Value::Array(_) | Value::Object(_) => "'const' failed".to_owned(),
            wanted => format!("value must be {}", display(wanted)),
        };
        return Some(problem(path, message));
    }
    if let Some(Value::Array(wanted)) = schema.get("enum")
        && !wanted.iter().any(|one| equal(one, value))
    {
        let message = if wanted.iter().any(|one| one.is_array() || one.is_object()) {
            "'enum' failed".to_owned()
        } else {
            let shown: Vec<String> = wanted.iter().map(display).collect();
            match shown.as_slice() {
                [one] => format!("value must be {one}"),
                all => format!("value must be one of {}", all.join(", ")),
            }
        };
        return Some(problem(path, message));
    }
    None
}

fn numeric(schema: &Map<String, Value>, value: f64, path: &Path, errors: &mut Vec<Problem>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let pair = |plain: &str, exclusive: &str| {
        if flag(exclusive) {
            (None, limit(plain))
        } else {
            (limit(plain), limit(exclusive))
        }
    };
    let (least, above) = pair("minimum", "exclusiveMinimum");
    let (most, below) = pair("maximum", "exclusiveMaximum");
    let mut check = |name: &str, limit: Option<f64>, is_wrong: fn(f64, f64) -> bool| {
        if let Some(limit) = limit
            && is_wrong(value, limit)
        {
            let message = format!("{name}: got {}, want {}", grouped(value), grouped(limit));
            errors.push(problem(path, message));
        }
    };
    check("minimum", least, |value, limit| value < limit);
    check("maximum", most, |value, limit| value > limit);
    check("exclusiveMinimum", above, |value, limit| value <= limit);
    check("exclusiveMaximum", below, |value, limit| value >= limit);
    check("multipleOf", limit("multipleOf"), |value, limit| {
        let quotient = value / limit;
        (quotient - quotient.round()).abs() > 1e-9
    });
}
