//! Rust types for a kind that somebody else defines, from its `CustomResourceDefinition`.
//!
//! The text is source to keep and to edit: structs with the schema's descriptions as comments, to be
//! used with `Controller::of_existing`, `Owned` and `Reads`. What a schema leaves open stays a
//! `serde_json::Value`. The definition stays the judge of what is valid, so bounds and patterns are
//! not repeated.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

const DERIVES: &str = "#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]\n";
const CONDITION: &str = "k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition";
const INT_OR_STRING: &str = "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString";
/// Words that are no names in Rust.
const KEYWORDS: [&str; 38] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "pub", "ref", "return", "static", "struct", "trait",
    "true", "type", "use", "where",
];

/// Types for the version of that name, or for the one that is stored; none if there is no such
/// version, or it has no schema.
pub fn types(crd: &CustomResourceDefinition, version: Option<&str>) -> Option<String> {
    let wanted = |one: &str, stored: bool| version.map_or(stored, |version| version == one);
    let mut versions = crd.spec.versions.iter();
    let version = versions.find(|one| wanted(&one.name, one.storage))?;
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    let schema = serde_json::to_value(schema).ok()?;
    let names = &crd.spec.names;
    let mut writer = Writer::default();
    let has_status = schema.pointer("/properties/status").is_some();
    let mut head = format!(
        "//! {}.{}: types made from its definition.\n\nuse kube::CustomResource;\nuse serde::{{Deserialize, Serialize}};\n\n",
        names.plural, crd.spec.group
    );
    let spec = schema
        .pointer("/properties/spec")
        .cloned()
        .unwrap_or_default();
    comment(&mut head, "", &spec, "What is wanted.");
    head.push_str(
        "#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]\n",
    );
    let namespaced = if crd.spec.scope == "Namespaced" {
        "\n    namespaced,"
    } else {
        ""
    };
    let status = if has_status {
        format!("\n    status = \"{}Status\",", names.kind)
    } else {
        String::new()
    };
    let _ = write!(
        head,
        "#[kube(\n    group = \"{}\",\n    version = \"{}\",\n    kind = \"{}\",\n    plural = \"{}\",{namespaced}{status}\n    schema = \"disabled\"\n)]\n",
        crd.spec.group, version.name, names.kind, names.plural
    );
    writer.fields(&format!("{}Spec", names.kind), &spec);
    if let Some(status) = schema.pointer("/properties/status") {
        writer.structure(&format!("{}Status", names.kind), status, "What is there.");
    }
    Some(format!("{head}{}", writer.text()))
}

/// Types in the order in which they are met.
#[derive(Default)]
struct Writer {
    finished: Vec<String>,
}

impl Writer {
    fn text(&self) -> String {
        self.finished.join("\n")
    }

    fn structure(&mut self, name: &str, schema: &Value, fallback: &str) {
        let mut text = String::new();
        comment(&mut text, "", schema, fallback);
        text.push_str(DERIVES);
        let at = self.finished.len();
        self.fields(name, schema);
        if let Some(made) = self.finished.get_mut(at) {
            made.insert_str(0, &text);
        }
    }

    /// The struct itself, and after it what its fields are made of.
    fn fields(&mut self, name: &str, schema: &Value) {
        let none = Map::new();
        let fields = schema["properties"].as_object().unwrap_or(&none);
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let place = self.finished.len();
        self.finished.push(String::new());
        let mut text = format!("pub struct {name} {{\n");
        for (field, of) in fields {
            let of_type = self.type_of(&format!("{name}{}", camel(field)), of);
            let is_required = required.contains(&field.as_str()) && of["nullable"] != true;
            comment(&mut text, "    ", of, &format!("`{field}`."));
            let rust = snake(field);
            let plain = rust.strip_prefix("r#").unwrap_or(&rust);
            let mut attributes = Vec::new();
            if plain != field {
                attributes.push(format!("rename = \"{field}\""));
            }
            if !is_required {
                attributes.push("default".to_owned());
                attributes.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            }
            if !attributes.is_empty() {
                let _ = writeln!(text, "    #[serde({})]", attributes.join(", "));
            }
            let of_type = if is_required {
                of_type
            } else {
                format!("Option<{of_type}>")
            };
            let _ = writeln!(text, "    pub {rust}: {of_type},");
        }
        text.push_str("}\n");
        if let Some(made) = self.finished.get_mut(place) {
            *made = text;
        }
    }

    fn type_of(&mut self, name: &str, schema: &Value) -> String {
        if schema["x-kubernetes-int-or-string"] == true {
            return INT_OR_STRING.to_owned();
        }
        let values = schema["enum"].as_array().map(Vec::as_slice);
        match (schema["type"].as_str(), values) {
            (Some("string"), Some(values)) if !values.is_empty() => self.choice(name, schema),
            (Some("string"), _) => "String".to_owned(),
            (Some("boolean"), _) => "bool".to_owned(),
            (Some("number"), _) => "f64".to_owned(),
            (Some("integer"), _) if schema["format"] == "int32" => "i32".to_owned(),
            (Some("integer"), _) => "i64".to_owned(),
            (Some("array"), _) if is_conditions(schema) => format!("Vec<{CONDITION}>"),
            (Some("array"), _) => {
                let singular = name.strip_suffix('s').unwrap_or(name);
                format!("Vec<{}>", self.type_of(singular, &schema["items"]))
            }
            (Some("object"), _) if has_fields(schema) => {
                self.structure(name, schema, "A part of the whole.");
                name.to_owned()
            }
            (Some("object"), _) if schema["additionalProperties"].is_object() => {
                let of = self.type_of(name, &schema["additionalProperties"]);
                format!("std::collections::BTreeMap<String, {of}>")
            }
            _ => "serde_json::Value".to_owned(),
        }
    }

    fn choice(&mut self, name: &str, schema: &Value) -> String {
        let mut text = String::new();
        comment(&mut text, "", schema, "One of these.");
        text.push_str(DERIVES);
        let _ = writeln!(text, "pub enum {name} {{");
        let values = schema["enum"].as_array().into_iter().flatten();
        let default = schema["default"].as_str();
        let named: Vec<&str> = values.filter_map(Value::as_str).collect();
        for (nth, value) in named.iter().enumerate() {
            let variant = camel(value);
            let _ = writeln!(text, "    /// `{value}`.");
            if default.map_or(nth == 0, |default| default == *value) {
                text.push_str("    #[default]\n");
            }
            if variant != *value {
                let _ = writeln!(text, "    #[serde(rename = \"{value}\")]");
            }
            let _ = writeln!(text, "    {variant},");
        }
        text.push_str("}\n");
        self.finished.push(text);
        name.to_owned()
    }
}

fn has_fields(schema: &Value) -> bool {
    schema["properties"]
        .as_object()
        .is_some_and(|fields| !fields.is_empty())
}

/// Whether a list holds conditions as every Kubernetes client knows them.
fn is_conditions(schema: &Value) -> bool {
    let fields = schema.pointer("/items/properties");
    let has = |name: &str| fields.is_some_and(|fields| fields.get(name).is_some());
    ["type", "status", "reason", "message", "lastTransitionTime"]
        .into_iter()
        .all(has)
}

fn comment(text: &mut String, indent: &str, schema: &Value, fallback: &str) {
    let description = schema["description"].as_str().unwrap_or(fallback);
    for line in description.lines() {
        let _ = writeln!(text, "{}", format!("{indent}/// {line}").trim_end());
    }
}

/// A name in `snake_case` that Rust takes.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut lower_before = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && lower_before {
            out.push('_');
        }
        lower_before = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        out.push(if letter.is_ascii_alphanumeric() {
            letter.to_ascii_lowercase()
        } else {
            '_'
        });
    }
    if out.starts_with(|first: char| first.is_ascii_digit()) {
        out.insert(0, '_');
    }
    match out.as_str() {
        "self" | "super" | "crate" => format!("{out}_"),
        word if KEYWORDS.contains(&word) => format!("r#{word}"),
        _ => out,
    }
}

/// A name in `CamelCase` that Rust takes.
fn camel(name: &str) -> String {
    let mut out = String::new();
    let mut begins = true;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() {
            begins = true;
            continue;
        }
        out.push(if begins {
            letter.to_ascii_uppercase()
        } else {
            letter
        });
        begins = false;
    }
    if out.is_empty() {
        return "Empty".to_owned();
    }
    if out.starts_with(|first: char| first.is_ascii_digit()) {
        out.insert(0, 'V');
    }
    out
}
