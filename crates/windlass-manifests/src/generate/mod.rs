//! Objects made from a definition's schema: the smallest one, as a sample, and random ones, for
//! property tests that must hold for every object (a conversion there and back, a reconciler that
//! never panics).
//!
//! Random objects follow from a seed. They keep to types, enums, bounds, patterns, formats, list
//! types and required fields; of `anyOf` and `oneOf` one variant is taken. What a schema says in CEL
//! or with `not` is not looked at: ask an API server which of them it takes.

mod pattern;
mod random;
mod text;

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

use self::random::Random;

/// How deep random maps and lists nest values of any type.
const DEPTH: usize = 6;

/// The smallest object of a version: required fields only, each with its default or its least value.
pub fn smallest(crd: &CustomResourceDefinition, version: &str, name: &str) -> Option<Value> {
    let mut generator = Generator {
        random: Random::new(0),
        smallest: true,
    };
    generator.object(crd, version, name)
}

/// Makes objects from schemas.
#[derive(Clone, Debug)]
pub struct Generator {
    random: Random,
    smallest: bool,
}

impl Generator {
    /// One whose objects follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            smallest: false,
        }
    }

    /// An object of a version of a kind; none if there is no such version, or it has no schema.
    pub fn object(
        &mut self,
        crd: &CustomResourceDefinition,
        version: &str,
        name: &str,
    ) -> Option<Value> {
        let found = crd.spec.versions.iter().find(|one| one.name == version)?;
        let schema = found.schema.as_ref()?.open_api_v3_schema.as_ref()?;
        let mut schema = serde_json::to_value(schema).ok()?;
        if let Some(fields) = schema["properties"].as_object_mut() {
            for own in ["apiVersion", "kind", "metadata"] {
                fields.remove(own);
            }
            if self.smallest {
                fields.remove("status");
            }
        }
        let mut object = self.value(&schema);
        object["apiVersion"] = format!("{}/{version}", crd.spec.group).into();
        object["kind"] = crd.spec.names.kind.as_str().into();
        object["metadata"] = json!({ "name": name });
        Some(object)
    }

    /// A value of a schema.
    pub fn value(&mut self, schema: &Value) -> Value {
        self.value_at(schema, 0)
    }

    fn value_at(&mut self, schema: &Value, depth: usize) -> Value {
        if let (Some(default), true) = (schema.get("default"), self.smallest) {
            return default.clone();
        }
        if schema["nullable"] == true && !self.smallest && self.random.one_in(8) {
            return Value::Null;
        }
        if let Some(values) = schema["enum"].as_array() {
            let values: Vec<&Value> = values.iter().filter(|one| !one.is_null()).collect();
            if let Some(&one) = self.pick(&values) {
                return one.clone();
            }
        }
        if schema["x-kubernetes-int-or-string"] == true {
            let text = self.smallest || self.random.one_in(2);
            return if text {
                self.text(schema).into()
            } else {
                // Clients keep it in 32 bits, whatever the schema allows.
                let mut schema = schema.clone();
                schema["format"] = "int32".into();
                self.integer(&schema).into()
            };
        }
        match schema["type"].as_str() {
            Some("object") => self.map(schema, depth),
            Some("array") => self.list(schema, depth),
            Some("string") => self.text(schema).into(),
            Some("integer") => self.integer(schema).into(),
            Some("number") => self.number(schema),
            Some("boolean") => (!self.smallest && self.random.one_in(2)).into(),
            _ => self.anything(depth),
        }
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = if self.smallest {
            0
        } else {
            usize::try_from(self.random.below(of.len() as u64)).unwrap_or(0)
        };
        of.get(at)
    }

    /// A number of items between two bounds, not far above the first.
    fn count(&mut self, least: Option<u64>, most: Option<u64>) -> u64 {
        let least = least.unwrap_or(0);
        if self.smallest {
            return least;
        }
        let most = most.unwrap_or(u64::MAX).min(least.saturating_add(3));
        self.random.between(least, most.max(least))
    }

    fn map(&mut self, schema: &Value, depth: usize) -> Value {
        let mut map = Map::new();
        let mut required: BTreeSet<&str> = names(&schema["required"]).collect();
        // Of variants one is taken: its fields are there, and those only others need are not.
        let mut barred: BTreeSet<&str> = BTreeSet::new();
        for key in ["oneOf", "anyOf"] {
            let variants = schema[key]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            if let Some(variant) = self.pick(variants) {
                required.extend(names(&variant["required"]));
                if key == "oneOf" {
                    barred.extend(variants.iter().flat_map(|one| names(&one["required"])));
                }
            }
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.contains(name.as_str());
            let wanted =
                !self.smallest && !barred.contains(name.as_str()) && !self.random.one_in(3);
            if is_required || wanted {
                let value = self.value_at(field, depth + 1);
                // A field that must be there is there, and is not null.
                if is_required || !value.is_null() || field["nullable"] == true {
                    map.insert(name.clone(), value);
                }
            }
        }
        let bound = |key: &str| schema[key].as_u64();
        let of_values = &schema["additionalProperties"];
        if of_values.is_object() {
            let wanted = self.count(bound("minProperties"), bound("maxProperties"));
            for nth in 0..wanted {
                let name = format!("{}{nth}", self.random.word(1, 6));
                let value = self.value_at(of_values, depth + 1);
                map.insert(name, value);
            }
        } else if schema["x-kubernetes-preserve-unknown-fields"] == true
            && !self.smallest
            && map.is_empty()
        {
            let value = self.anything(depth + 1);
            map.insert(self.random.word(1, 6), value);
        }
        Value::Object(map)
    }

    fn list(&mut self, schema: &Value, depth: usize) -> Value {
        let bound = |key: &str| schema[key].as_u64();
        let wanted = self.count(bound("minItems"), bound("maxItems"));
        let keys: Vec<&str> = names(&schema["x-kubernetes-list-map-keys"]).collect();
        let (mut items, mut seen) = (Vec::new(), BTreeSet::new());
        for _ in 0..wanted {
            // A set and a map have each once; a small domain may be used up.
            let fresh = (0..20).find_map(|_| {
                let item = self.value_at(&schema["items"], depth + 1);
                let identity = match schema["x-kubernetes-list-type"].as_str() {
                    Some("map") => keys.iter().map(|key| item[*key].to_string()).collect(),
                    Some("set") => item.to_string(),
                    _ => return Some(item),
                };
                seen.insert(identity).then_some(item)
            });
            items.extend(fresh);
        }
        Value::Array(items)
    }

    fn integer(&mut self, schema: &Value) -> i64 {
        let bits_least = if schema["format"] == "int32" {
            i64::from(i32::MIN)
        } else {
            i64::MIN
        };
        let bits_most = if schema["format"] == "int32" {
            i64::from(i32::MAX)
        } else {
            i64::MAX
        };
        let bound = |key: &str| {
            let bound = &schema[key];
            #[allow(clippy::cast_possible_truncation)]
            bound
                .as_i64()
                .or_else(|| bound.as_f64().map(|bound| bound as i64))
        };
        let mut least = bound("minimum").unwrap_or(bits_least).max(bits_least);
        let mut most = bound("maximum").unwrap_or(bits_most).min(bits_most);
        if schema["exclusiveMinimum"] == true {
            least = least.saturating_add(1);
        }
        if schema["exclusiveMaximum"] == true {
            most = most.saturating_sub(1);
        }
        let step = bound("multipleOf").filter(|step| *step > 1);
        let chosen = if self.smallest {
            least.max(0).min(most)
        } else {
            self.random.integer(least, most)
        };
        match step {
            None => chosen,
            Some(step) => {
                let down = chosen - chosen.rem_euclid(step);
                if down >= least {
                    down
                } else {
                    down.saturating_add(step)
                }
            }
        }
    }

    fn number(&mut self, schema: &Value) -> Value {
        // Halves are exact in every encoding, so a number survives any way there and back.
        let bound = |key: &str| schema[key].as_f64();
        let least = bound("minimum").unwrap_or(-1e6).max(-1e12);
        let most = bound("maximum").unwrap_or(1e6).min(1e12);
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
        let chosen = self
            .random
            .integer((least * 2.0).ceil() as i64, (most * 2.0).floor() as i64)
            as f64
            / 2.0;
        let strict = (schema["exclusiveMinimum"] == true && chosen <= least)
            || (schema["exclusiveMaximum"] == true && chosen >= most);
        if strict {
            f64::midpoint(least, most).into()
        } else {
            chosen.into()
        }
    }

    fn anything(&mut self, depth: usize) -> Value {
        if self.smallest {
            return json!({});
        }
        match self.random.below(if depth > DEPTH { 3 } else { 5 }) {
            0 => self.random.integer(-1000, 1000).into(),
            1 => self.random.word(0, 8).into(),
            2 => self.random.one_in(2).into(),
            3 => json!([self.anything(depth + 1)]),
            _ => json!({ self.random.word(1, 6): self.anything(depth + 1) }),
        }
    }
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
