//! What the types look like in protobuf: `facts/protobuf.json`, read at the first body of that form.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let raw: Raw = serde_json::from_str(include_str!("../../../facts/protobuf.json"))
        .expect("facts/protobuf.json is generated and checked in: it parses");
    Table::from_raw(&raw)
});

/// The facts.
pub(super) fn get() -> &'static Table {
    &TABLE
}

/// Every type, and which kind is of which.
pub(super) struct Table {
    /// By `group/version/Kind`.
    kinds: HashMap<String, usize>,
    by_name: HashMap<String, usize>,
    types: Vec<Message>,
}

impl Table {
    /// The type of a kind.
    pub(super) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<usize> {
        self.kinds
            .get(&format!("{group}/{version}/{kind}"))
            .copied()
    }

    /// The type of that `OpenAPI` name.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// A type, by the number that fields refer to it by.
    pub(super) fn message(&self, id: usize) -> Option<&Message> {
        self.types.get(id)
    }
}

/// A type that is a message on the wire.
#[derive(Debug)]
pub(super) struct Message {
    /// As Go calls it, without its package.
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) fields: Vec<Field>,
}

/// What a message becomes in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An object with its fields.
    Struct,
    /// A timestamp, in whole seconds.
    Time,
    /// A timestamp, in microseconds.
    MicroTime,
    Quantity,
    IntOrString,
    /// The JSON that its bytes are.
    Json,
    /// A list with a type of its own.
    Strings,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
}

/// A field of a message.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) number: i32,
    /// Its name in JSON.
    pub(super) json: String,
    /// Its name in Go, for errors.
    pub(super) go: String,
    pub(super) kind: Kind,
    pub(super) many: Many,
    /// Absence is told apart from zero.
    pub(super) pointer: bool,
    pub(super) shown: Shown,
}

/// When a field is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Always,
    /// Unless it is zero; structs are never.
    UnlessEmpty,
    /// Unless it is zero, structs included.
    UnlessZero,
    /// Not itself: its fields are its owner's.
    Inline,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Many {
    One,
    List,
    /// By text.
    Map,
}

/// What one value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Message(usize),
}

#[derive(Deserialize)]
struct Raw {
    kinds: HashMap<String, String>,
    types: std::collections::BTreeMap<String, Value>,
}

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

impl Table {
    fn from_raw(raw: &Raw) -> Self {
        let by_name: HashMap<String, usize> = raw
            .types
            .keys()
            .enumerate()
            .map(|(id, name)| (name.clone(), id))
            .collect();
        let types: Vec<Message> = raw
            .types
            .iter()
            .map(|(name, value)| Message::from_raw(name, value, &by_name))
            .collect();
        let kinds = raw
            .kinds
            .iter()
            .filter_map(|(kind, name)| Some((kind.clone(), *by_name.get(name)?)))
            .collect();
        Self {
            kinds,
            by_name,
            types,
        }
    }
}

impl Message {
    fn from_raw(full: &str, raw: &Value, by_name: &HashMap<String, usize>) -> Self {
        let (package, name) = full.rsplit_once('.').unwrap_or_default();
        let plain =
            |number, go: &str, shape: &str| Field::new(number, go, go, shape, "", package, by_name);
        let schema =
            |number, go: &str, prefix: &str| plain(number, go, &format!("{prefix}{SCHEMA}"));
        let seconds = || vec![plain(1, "Seconds", "int64"), plain(2, "Nanos", "int32")];
        // Errors name the message that a time is made from.
        let (name, form, fields) = match raw.as_str() {
            Some("time") => ("Timestamp", Form::Time, seconds()),
            Some("microTime") => ("Timestamp", Form::MicroTime, seconds()),
            Some("quantity") => (name, Form::Quantity, vec![plain(1, "String_", "string")]),
            Some("intOrString") => (
                name,
                Form::IntOrString,
                vec![
                    plain(1, "Type", "int64"),
                    plain(2, "IntVal", "int32"),
                    plain(3, "StrVal", "string"),
                ],
            ),
            Some("json") => (name, Form::Json, vec![plain(1, "Raw", "bytes")]),
            Some("strings") => (name, Form::Strings, vec![plain(1, "Items", "[]string")]),
            Some("schemaOrBool") => (
                name,
                Form::SchemaOrBool,
                vec![plain(1, "Allows", "bool"), schema(2, "Schema", "*")],
            ),
            Some("schemaOrArray") => (
                name,
                Form::SchemaOrArray,
                vec![schema(1, "Schema", "*"), schema(2, "JSONSchemas", "[]")],
            ),
            Some("schemaOrStrings") => (
                name,
                Form::SchemaOrStrings,
                vec![schema(1, "Schema", "*"), plain(2, "Property", "[]string")],
            ),
            _ => (name, Form::Struct, Self::rows(raw, package, by_name)),
        };
        Self {
            name: name.to_owned(),
            form,
            fields,
        }
    }

    fn rows(raw: &Value, package: &str, by_name: &HashMap<String, usize>) -> Vec<Field> {
        let rows = raw.as_array().into_iter().flatten();
        rows.map(|row| {
            let text = |place: usize| row[place].as_str().unwrap_or_default();
            let number = row[0].as_i64().unwrap_or_default();
            let number = i32::try_from(number).unwrap_or_default();
            let (json, go) = (text(1), text(4));
            let capital = || {
                let mut letters = json.chars();
                let first = letters.next().map(|letter| letter.to_ascii_uppercase());
                first.into_iter().chain(letters).collect()
            };
            let go: String = if go.is_empty() {
                capital()
            } else {
                go.to_owned()
            };
            Field::new(number, json, &go, text(2), text(3), package, by_name)
        })
        .collect()
    }

    pub(super) fn field(&self, number: i32) -> Option<(usize, &Field)> {
        let mut fields = self.fields.iter().enumerate();
        fields.find(|(_, field)| field.number == number)
    }
}

impl Field {
    fn new(
        number: i32,
        json: &str,
        go: &str,
        shape: &str,
        options: &str,
        package: &str,
        by_name: &HashMap<String, usize>,
    ) -> Self {
        let (many, rest) = match (shape.strip_prefix("[]"), shape.strip_prefix("map:")) {
            (Some(rest), _) => (Many::List, rest),
            (_, Some(rest)) => (Many::Map, rest),
            _ => (Many::One, shape),
        };
        let (pointer, rest) = rest
            .strip_prefix('*')
            .map_or((false, rest), |rest| (true, rest));
        let kind = match rest {
            "string" => Kind::String,
            "bool" => Kind::Bool,
            "int32" => Kind::Int32,
            "int64" => Kind::Int64,
            "float64" => Kind::Double,
            "bytes" => Kind::Bytes,
            name => {
                let full = match name.strip_prefix('.') {
                    Some(own) => format!("{package}.{own}"),
                    None => name.to_owned(),
                };
                // A name that leads nowhere is found by the test below.
                Kind::Message(by_name.get(&full).copied().unwrap_or(usize::MAX))
            }
        };
        let has = |option: &str| options.split(',').any(|given| given == option);
        Self {
            number,
            json: json.to_owned(),
            go: go.to_owned(),
            kind,
            many,
            pointer,
            shown: if has("inline") {
                Shown::Inline
            } else if has("omitzero") {
                Shown::UnlessZero
            } else if has("omitempty") {
                Shown::UnlessEmpty
            } else {
                Shown::Always
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::facts;

    #[test]
    fn every_served_kind_and_every_reference_is_there() {
        for resource in &facts::get().resources {
            let found = get().of_kind(&resource.group, &resource.version, &resource.kind);
            assert!(found.is_some(), "{} is not known", resource.kind);
        }
        for message in &get().types {
            assert!(!message.fields.is_empty() || message.form == Form::Struct);
            for field in &message.fields {
                assert!(field.number > 0, "{}.{}", message.name, field.go);
                if let Kind::Message(id) = field.kind {
                    assert!(get().message(id).is_some(), "{}.{}", message.name, field.go);
                }
            }
        }
    }

    /// The two tables were read from different places: `OpenAPI` and Go's types.
    #[test]
    fn the_fields_are_those_of_the_table_of_kinds() {
        fn names(message: &Message, out: &mut Vec<String>) {
            for field in &message.fields {
                match field.kind {
                    Kind::Message(id) if field.shown == Shown::Inline => {
                        get()
                            .message(id)
                            .into_iter()
                            .for_each(|inner| names(inner, out));
                    }
                    _ => out.push(field.json.clone()),
                }
            }
        }
        let mut compared = 0;
        for (name, raw) in &facts::get().raw_types {
            let Some(message) = get().named(name).and_then(|id| get().message(id)) else {
                continue;
            };
            let (Some(fields), Form::Struct) = (&raw.fields, message.form) else {
                continue;
            };
            let mut ours = Vec::new();
            names(message, &mut ours);
            ours.sort();
            let mut theirs: Vec<String> = fields.keys().cloned().collect();
            theirs.retain(|field| {
                ours.contains(field) || !["kind", "apiVersion"].contains(&field.as_str())
            });
            assert_eq!(ours, theirs, "{name}");
            compared += 1;
        }
        assert!(compared > 400, "{compared} types compared");
    }
}
