//! Kubernetes' field errors: each knows how its sentence reads.

use serde_json::Value;

/// One failed field of an Invalid answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Kubernetes' name of the kind of error.
    pub reason: &'static str,
    /// What is wrong, in words.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

fn cause(reason: &'static str, field: impl Into<String>, message: String) -> Cause {
    Cause {
        reason,
        message,
        field: field.into(),
    }
}

/// The value itself is wrong.
pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Cause {
    // Go prints strings quoted and composite values as JSON.
    cause(
        "FieldValueInvalid",
        field,
        format!("Invalid value: {value}: {detail}"),
    )
}

/// The same for a value that is shown in another form than its JSON.
pub fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Cause {
    cause(
        "FieldValueInvalid",
        field,
        format!("Invalid value: {shown}: {detail}"),
    )
}

/// The same for a value that is not shown at all.
pub fn invalid_hidden(field: impl Into<String>, detail: &str) -> Cause {
    cause(
        "FieldValueInvalid",
        field,
        format!("Invalid value: {detail}"),
    )
}

/// The value names something that does not exist.
pub fn not_found(field: impl Into<String>, value: &Value) -> Cause {
    cause("FieldValueNotFound", field, format!("Not found: {value}"))
}

/// The value has the wrong JSON type.
pub fn type_invalid(field: impl Into<String>, shown: &str, detail: &str) -> Cause {
    cause(
        "FieldValueTypeInvalid",
        field,
        format!("Invalid value: {shown}: {detail}"),
    )
}

/// The value is missing.
pub fn required(field: impl Into<String>, detail: &str) -> Cause {
    let message = if detail.is_empty() {
        "Required value".to_owned()
    } else {
        format!("Required value: {detail}")
    };
    cause("FieldValueRequired", field, message)
}

/// The value may not be there.
pub fn forbidden(field: impl Into<String>, detail: &str) -> Cause {
    cause("FieldValueForbidden", field, format!("Forbidden: {detail}"))
}

/// The value is none of those allowed.
pub fn not_supported(field: impl Into<String>, value: &Value, allowed: &[String]) -> Cause {
    cause(
        "FieldValueNotSupported",
        field,
        format!(
            "Unsupported value: {value}: supported values: {}",
            allowed.join(", ")
        ),
    )
}

/// The value is there already.
pub fn duplicate(field: impl Into<String>, value: &Value) -> Cause {
    cause(
        "FieldValueDuplicate",
        field,
        format!("Duplicate value: {value}"),
    )
}

/// The same for a value that is shown in another form than its JSON.
pub fn duplicate_shown(field: impl Into<String>, shown: &str) -> Cause {
    cause(
        "FieldValueDuplicate",
        field,
        format!("Duplicate value: {shown}"),
    )
}

/// The same for a value that is not shown at all.
pub fn duplicate_hidden(field: impl Into<String>) -> Cause {
    cause("FieldValueDuplicate", field, "Duplicate value".to_owned())
}

/// The value has too many bytes.
pub fn too_long(field: impl Into<String>, max: u64) -> Cause {
    cause(
        "FieldValueTooLong",
        field,
        format!(
            "Too long: may not be more than {max} {}",
            if max == 1 { "byte" } else { "bytes" }
        ),
    )
}

/// The list has too many items.
pub fn too_many(field: impl Into<String>, actual: usize, max: u64) -> Cause {
    cause(
        "FieldValueTooMany",
        field,
        format!("Too many: {actual}: must have at most {max} items"),
    )
}
