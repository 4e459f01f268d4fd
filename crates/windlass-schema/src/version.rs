//! What a version of a definition says besides its schema: how it is scaled, its columns, and the
//! fields that can be selected by.

use serde_json::Value;

use super::definition::text;
use super::field_path;
use super::path::{child, index};
use super::schema::Schema;
use windlass_apimachinery::field::{self, Cause};

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] = &[
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const MAX_SELECTABLE: usize = 8;

pub(super) fn check_scale(version: &Value, at: &str, causes: &mut Vec<Cause>) {
    let scale = &version["subresources"]["scale"];
    if !scale.is_object() {
        return;
    }
    let mut check = |part: &str, under: &[&str], why: &str| {
        let at = child(at, &format!("scale.{part}"));
        let path = text(&scale[part]);
        if path.is_empty() {
            if part != "labelSelectorPath" {
                causes.push(field::required(at, ""));
            }
        } else if !path.starts_with('.') {
            let why = "must be a simple json path starting with .";
            causes.push(field::invalid(at, &path.into(), why));
        } else if !under.iter().any(|under| path.starts_with(under)) {
            causes.push(field::invalid(at, &path.into(), why));
        }
    };
    let (spec, status) = (".spec.", ".status.");
    check(
        "specReplicasPath",
        &[spec],
        "should be a json path under .spec",
    );
    check(
        "statusReplicasPath",
        &[status],
        "should be a json path under .status",
    );
    check(
        "labelSelectorPath",
        &[spec, status],
        "should be a json path under either .spec or .status",
    );
}

pub(super) fn check_columns(version: &Value, at: &str, causes: &mut Vec<Cause>) {
    let columns = version["additionalPrinterColumns"].as_array();
    for (place, column) in columns.into_iter().flatten().enumerate() {
        let at = index(at, place);
        let part = |name: &str| text(&column[name]);
        if part("name").is_empty() {
            causes.push(field::required(child(&at, "name"), ""));
        }
        let why = format!("must be one of {}", COLUMN_TYPES.join(","));
        if part("type").is_empty() {
            causes.push(field::required(child(&at, "type"), &why));
        } else if !COLUMN_TYPES.contains(&part("type")) {
            causes.push(field::invalid(child(&at, "type"), &column["type"], &why));
        }
        if !part("format").is_empty() && !COLUMN_FORMATS.contains(&part("format")) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            causes.push(field::invalid(
                child(&at, "format"),
                &column["format"],
                &why,
            ));
        }
        let path = part("jsonPath");
        if path.is_empty() {
            causes.push(field::required(child(&at, "JSONPath"), ""));
        } else if !path.starts_with('.') {
            let why = "must be a simple json path starting with .";
            causes.push(field::invalid(child(&at, "JSONPath"), &path.into(), why));
        }
    }
}

pub(super) fn check_selectable(version: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(fields) = version["selectableFields"].as_array() else {
        return;
    };
    let raw = version["schema"]["openAPIV3Schema"].clone();
    let Ok(schema) = serde_json::from_value::<Schema>(raw) else {
        return;
    };
    let mut known: Vec<String> = Vec::new();
    for (place, selectable) in fields.iter().enumerate() {
        let at = child(&index(at, place), "jsonPath");
        let path = text(&selectable["jsonPath"]);
        if path.is_empty() {
            causes.push(field::required(at, ""));
            continue;
        }
        let mut wrong = |why: &str| causes.push(field::invalid(&at, &path.into(), why));
        let (found, ty) = match field_path::find(path, &schema, false) {
            Ok(found) => found,
            Err(why) => {
                wrong(&format!("is an invalid path: {why}"));
                continue;
            }
        };
        if found.split(['.', '[']).next() == Some("metadata") {
            wrong("must not point to fields in metadata");
        }
        if !matches!(ty.ty.as_str(), "string" | "boolean" | "integer") {
            wrong(
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            );
        }
        if known.contains(&found) {
            causes.push(field::duplicate(at, &path.into()));
        } else {
            known.push(found);
        }
    }
    if known.len() > MAX_SELECTABLE {
        causes.push(field::too_many(at, known.len(), MAX_SELECTABLE as u64));
    }
}
