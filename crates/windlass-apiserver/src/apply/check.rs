//! Whether a configuration has the form its type asks for.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use super::path::PathElement;
use super::typed::item_element;
use crate::findings::Findings;
use crate::go;
use crate::registry::types::{ListKind, Scalar, Type};
use crate::steps::step;

/// Whether a value has the form of its type at all, items that a list has twice apart: of one that
/// has not, nobody can own a part.
pub(crate) fn is_typed(value: &Value, ty: &Type) -> bool {
    let mut wrong = Wrong::default();
    check_at(value, ty, &Way::Root, &mut wrong);
    wrong.all_duplicates
}

/// What is said of an item that a list has twice.
const DUPLICATE: &str = ": duplicate entries for key ";

/// Where a value has not the form of its type, in the words of Kubernetes' structured merge.
#[derive(Debug, thiserror::Error)]
#[error("{}", shown(.0))]
pub(crate) struct Misfits(Vec<String>);

fn shown(misfits: &[String]) -> String {
    match misfits {
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    }
}

/// Refuses a value that has not the form of its type.
pub(crate) fn check(value: &Value, ty: &Type) -> Result<(), Misfits> {
    let mut wrong = Wrong::default();
    check_at(value, ty, &Way::Root, &mut wrong);
    let misfits = wrong.all.into_texts();
    if misfits.is_empty() {
        return Ok(());
    }
    Err(Misfits(misfits))
}

/// The way to a value, put into words where something is wrong.
#[derive(Clone, Copy)]
enum Way<'a> {
    Root,
    Field(&'a Way<'a>, &'a str),
    Element(&'a Way<'a>, &'a PathElement),
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(before, key) => write!(f, "{before}.{key}"),
            Self::Element(before, element) => write!(f, "{before}{element}"),
        }
    }
}

/// All that is wrong with a value.
struct Wrong {
    all: Findings,
    /// Nothing else than items that a list has twice.
    all_duplicates: bool,
}

impl Default for Wrong {
    fn default() -> Self {
        Self {
            all: Findings::bounded(),
            all_duplicates: true,
        }
    }
}

impl Wrong {
    fn add(&mut self, why: impl FnOnce() -> String) {
        self.all_duplicates = false;
        self.all.add(why);
    }

    fn add_at(&mut self, way: &Way<'_>, why: impl FnOnce() -> String) {
        self.add(|| match way {
            Way::Root => why(),
            way => format!("{way}: {}", why()),
        });
    }
}

fn check_at(value: &Value, ty: &Type, way: &Way<'_>, wrong: &mut Wrong) {
    step();
    match (value, ty.resolve()) {
        (Value::Null, _) | (_, Type::Any | Type::Named(_)) => {}
        (Value::Object(map), Type::Struct { fields, open, .. }) => {
            for (key, value) in map {
                let below = Way::Field(way, key);
                match fields.get(key) {
                    Some(field) => check_at(value, &field.ty, &below, wrong),
                    None if *open => {}
                    None => {
                        // Nothing after it is looked at.
                        wrong.add(|| format!("{below}: field not declared in schema"));
                        return;
                    }
                }
            }
        }
        (Value::Object(map), Type::Map { value: ty, .. }) => {
            for (key, value) in map {
                check_at(value, ty, &Way::Field(way, key), wrong);
            }
        }
        (Value::Array(items), Type::List { item, kind }) => {
            let mut seen = HashSet::new();
            for (index, value) in items.iter().enumerate() {
                if let Err(why) = check_element(value, kind, item) {
                    wrong.add(|| format!("{way}: element {index}: {why}"));
                    return;
                }
                let element = item_element(value, ty, index);
                if *kind != ListKind::Atomic && !seen.insert(element.clone()) {
                    wrong.all.add(|| format!("{way}{DUPLICATE}{element}"));
                }
                check_at(value, item, &Way::Element(way, &element), wrong);
            }
        }
        (_, Type::Struct { .. } | Type::Map { .. }) => {
            wrong.add_at(way, || {
                format!("expected map, got &{{{}}}", go::plus_v(value))
            });
        }
        (_, Type::List { .. }) => {
            wrong.add_at(way, || {
                format!("expected list, got &{{{}}}", go::plus_v(value))
            });
        }
        (_, Type::Scalar(scalar)) => {
            if let Some(why) = misfit(value, *scalar) {
                wrong.add_at(way, || why);
            }
        }
    }
}

/// Why an element cannot be distinguished from the others of its list.
#[derive(Debug, thiserror::Error)]
enum ElementError {
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values for any key fields)"
    )]
    NoKeys(String),
    #[error("associative list with keys may not have a null element")]
    NullInMap,
    #[error("associative list with keys may not have non-map elements")]
    NoMap,
}

/// Refuses an element that cannot be distinguished from the others of its list.
fn check_element(element: &Value, kind: &ListKind, item: &Type) -> Result<(), ElementError> {
    match (kind, element) {
        (ListKind::Set, Value::Object(_)) => Err(ElementError::MapInSet),
        (ListKind::Set, Value::Array(_)) => Err(ElementError::ListInSet),
        (ListKind::Set, Value::Null) => Err(ElementError::NullInSet),
        (ListKind::Atomic | ListKind::Set, _) => Ok(()),
        (ListKind::Map(keys), Value::Object(map)) => {
            let known = |key: &String| {
                map.contains_key(key)
                    || item.field(key).is_some_and(|field| field.default.is_some())
            };
            // A key of a built-in type that is not given is its zero.
            if keys.iter().any(known) || matches!(item, Type::Named(_)) {
                return Ok(());
            }
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            Err(ElementError::NoKeys(keys.join(" ")))
        }
        (ListKind::Map(_), Value::Null) => Err(ElementError::NullInMap),
        (ListKind::Map(_), _) => Err(ElementError::NoMap),
    }
}

fn misfit(value: &Value, scalar: Scalar) -> Option<String> {
    match scalar {
        Scalar::String | Scalar::Bytes | Scalar::Time | Scalar::MicroTime => (!value.is_string())
            .then(|| {
                let shown = go::sharp_v(value);
                format!("expected string, got &value.valueUnstructured{{Value:{shown}}}")
            }),
        Scalar::Int32 | Scalar::Integer | Scalar::Number => (!value.is_number())
            .then(|| format!("expected numeric (int or float), got {}", go_type(value))),
        Scalar::Boolean => (!value.is_boolean())
            .then(|| format!("expected boolean, got &{{{}}}", go::plus_v(value))),
        Scalar::Untyped => (value.is_object() || value.is_array())
            .then(|| format!("expected any scalar, got &{{{}}}", go::plus_v(value))),
        Scalar::IntOrString | Scalar::Quantity => None,
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
