//! `values.schema.json`: JSON Schema, drafts 4 to 2020-12, with the messages that Helm prints.
//!
//! References lead to places within the schema; one that leads elsewhere is refused, because
//! rendering reads no file and sends no request.
//!
//! | module | what |
//! | --- | --- |
//! | `scalar` | types, constants, texts and numbers |
//! | `collection` | objects and lists |
//! | `combine` | schemas of several, and what none of them looked at |
//! | `problem` | what is wrong, in the words that are printed |

mod collection;
mod combine;
mod problem;
mod scalar;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::problem::{Problem, because, problem, quote};
use self::scalar::{numeric, simple};
use crate::chart::Chart;
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
