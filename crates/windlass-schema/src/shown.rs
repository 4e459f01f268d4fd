//! How Go shows the parts of a definition in its messages: as structs, under the names they have there.

use serde_json::{Map, Value};

use super::schema::Rule;

/// A rule.
pub(super) fn rule(rule: &Rule) -> String {
    let text = |text: &str| html_safe(&Value::from(text).to_string());
    let optional =
        |value: Option<Value>| value.map_or("null".to_owned(), |value| value.to_string());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        optional(rule.reason.as_deref().map(Value::from)),
        text(&rule.field_path),
        optional(rule.optional_old_self.map(Value::from)),
    )
}

/// The versions. What all of them share is not said of each.
pub(super) fn versions(versions: &[Value], schema_shared: bool) -> String {
    let flag = |version: &Value, name: &str| version[name] == true;
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            let schema = match version["schema"].get("openAPIV3Schema") {
                Some(schema) if !schema_shared => {
                    format!("{{\"OpenAPIV3Schema\":{}}}", self::schema(schema))
                }
                _ => "null".to_owned(),
            };
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{schema},\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                version["name"],
                flag(version, "served"),
                flag(version, "storage"),
                flag(version, "deprecated"),
                version["deprecationWarning"],
            )
        })
        .collect();
    format!("[{}]", shown.join(","))
}

/// The fields of a schema: Go's name, the name on the wire, and what stands there when nobody set it.
const SCHEMA: &[(&str, &str, &str)] = &[
    ("ID", "id", "\"\""),
    ("Schema", "$schema", "\"\""),
    ("Ref", "$ref", "null"),
    ("Description", "description", "\"\""),
    ("Type", "type", "\"\""),
    ("Nullable", "nullable", "false"),
    ("Format", "format", "\"\""),
    ("Title", "title", "\"\""),
    ("Default", "default", "null"),
    ("Maximum", "maximum", "null"),
    ("ExclusiveMaximum", "exclusiveMaximum", "false"),
    ("Minimum", "minimum", "null"),
    ("ExclusiveMinimum", "exclusiveMinimum", "false"),
    ("MaxLength", "maxLength", "null"),
    ("MinLength", "minLength", "null"),
    ("Pattern", "pattern", "\"\""),
    ("MaxItems", "maxItems", "null"),
    ("MinItems", "minItems", "null"),
    ("UniqueItems", "uniqueItems", "false"),
    ("MultipleOf", "multipleOf", "null"),
    ("Enum", "enum", "null"),
    ("MaxProperties", "maxProperties", "null"),
    ("MinProperties", "minProperties", "null"),
    ("Required", "required", "null"),
    ("Items", "items", "null"),
    ("AllOf", "allOf", "null"),
    ("OneOf", "oneOf", "null"),
    ("AnyOf", "anyOf", "null"),
    ("Not", "not", "null"),
    ("Properties", "properties", "null"),
    ("AdditionalProperties", "additionalProperties", "null"),
    ("PatternProperties", "patternProperties", "null"),
    ("Dependencies", "dependencies", "null"),
    ("AdditionalItems", "additionalItems", "null"),
    ("Definitions", "definitions", "null"),
    ("ExternalDocs", "externalDocs", "null"),
    ("Example", "example", "null"),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        "null",
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        "false",
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", "false"),
    ("XListMapKeys", "x-kubernetes-list-map-keys", "null"),
    ("XListType", "x-kubernetes-list-type", "null"),
    ("XMapType", "x-kubernetes-map-type", "null"),
    ("XValidations", "x-kubernetes-validations", "null"),
];

/// A schema.
pub(super) fn schema(raw: &Value) -> String {
    let members: Vec<String> = SCHEMA
        .iter()
        .map(|(name, field, nothing)| {
            let value = match (raw.get(field), *field) {
                (None | Some(Value::Null), _) => (*nothing).to_owned(),
                (Some(inner), "not") => schema(inner),
                (Some(Value::Object(inner)), "items") => {
                    format!(
                        "{{\"Schema\":{},\"JSONSchemas\":null}}",
                        schema(&Value::Object(inner.clone()))
                    )
                }
                (Some(Value::Bool(allows)), "additionalProperties") => {
                    format!("{{\"Allows\":{allows},\"Schema\":null}}")
                }
                (Some(inner), "additionalProperties") => {
                    format!("{{\"Allows\":true,\"Schema\":{}}}", schema(inner))
                }
                (Some(Value::Array(inner)), "allOf" | "oneOf" | "anyOf") => {
                    let inner: Vec<String> = inner.iter().map(schema).collect();
                    format!("[{}]", inner.join(","))
                }
                (
                    Some(Value::Object(inner)),
                    "properties" | "definitions" | "patternProperties",
                ) => named_schemas(inner),
                (Some(Value::Array(rules)), "x-kubernetes-validations") => {
                    let rules: Vec<String> = rules
                        .iter()
                        .filter_map(|raw| serde_json::from_value(raw.clone()).ok())
                        .map(|found| rule(&found))
                        .collect();
                    format!("[{}]", rules.join(","))
                }
                (Some(plain), _) => html_safe(&plain.to_string()),
            };
            format!("\"{name}\":{value}")
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn named_schemas(schemas: &Map<String, Value>) -> String {
    let members: Vec<String> = schemas
        .iter()
        .map(|(name, inner)| format!("{}:{}", Value::from(name.as_str()), schema(inner)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Go writes what means something in HTML as an escape.
fn html_safe(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}
