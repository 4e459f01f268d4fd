//! Names, labels and annotations: what is allowed, in Kubernetes' words.

use serde_json::Value;

use crate::object;
use crate::resource::Resource;
use crate::status::{Cause, field};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn subdomain_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push("must be no more than 253 bytes".to_owned());
    }
    if !name.split('.').all(is_label) {
        errors.push(SUBDOMAIN.to_owned());
    }
    errors
}

fn label_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !is_label(name) {
        errors.push(LABEL.to_owned());
    }
    errors
}

fn label_1035_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        errors.push(LABEL_1035.to_owned());
    }
    errors
}

/// A name that only has to be one path segment.
fn segment_errors(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| name.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

fn is_qualified_part(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Label keys and annotation keys: an optional DNS prefix and a name.
fn qualified_errors(key: &str) -> Vec<String> {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let mut errors = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            errors.push("prefix part must be non-empty".to_owned());
        } else {
            errors.extend(
                subdomain_errors(prefix)
                    .into_iter()
                    .map(|error| format!("prefix part {error}")),
            );
        }
    }
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_qualified_part(name) {
        errors.push(QUALIFIED.to_owned());
    }
    errors
}

/// What is wrong with an object's metadata.
pub(crate) fn metadata_causes(object: &Value, resource: &Resource) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object::meta(object, "name");
    let check = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => label_errors,
        ("", "services") => label_1035_errors,
        ("rbac.authorization.k8s.io", _) => segment_errors,
        _ => subdomain_errors,
    };
    if name.is_empty() {
        causes.push(field::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        causes.extend(
            check(name)
                .iter()
                .map(|error| field::invalid("metadata.name", &name.into(), error)),
        );
    }
    let map = |field: &str| {
        object["metadata"][field]
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    for (key, value) in map("labels") {
        causes.extend(
            qualified_errors(&key)
                .iter()
                .map(|error| field::invalid("metadata.labels", &key.as_str().into(), error)),
        );
        let text = value.as_str().unwrap_or_default();
        if !text.is_empty() && !is_qualified_part(text) {
            causes.push(field::invalid("metadata.labels", &value, LABEL_VALUE));
        }
    }
    for key in map("annotations").keys() {
        let lower = key.to_lowercase();
        causes.extend(
            qualified_errors(&lower)
                .iter()
                .map(|error| field::invalid("metadata.annotations", &key.as_str().into(), error)),
        );
    }
    for (index, finalizer) in object::finalizers(object).iter().enumerate() {
        let path = format!("metadata.finalizers[{index}]");
        causes.extend(
            qualified_errors(finalizer)
                .iter()
                .map(|error| field::invalid(path.clone(), &(*finalizer).into(), error)),
        );
    }
    owner_causes(object, &mut causes);
    causes
}

fn owner_causes(object: &Value, causes: &mut Vec<Cause>) {
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for (index, owner) in owners.iter().enumerate() {
        for part in ["apiVersion", "kind", "name", "uid"] {
            if owner[part].as_str().is_none_or(str::is_empty) {
                causes.push(field::invalid(
                    format!("metadata.ownerReferences[{index}].{part}"),
                    &owner[part].as_str().unwrap_or_default().into(),
                    if part == "apiVersion" {
                        "version must not be empty"
                    } else {
                        "must not be empty"
                    },
                ));
            }
        }
    }
    let controllers: Vec<&Value> = owners
        .iter()
        .filter(|owner| owner["controller"] == true)
        .collect();
    if let [first, second, ..] = controllers.as_slice() {
        causes.push(field::invalid(
            "metadata.ownerReferences",
            &object["metadata"]["ownerReferences"],
            &format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                first["kind"].as_str().unwrap_or_default(),
                second["kind"].as_str().unwrap_or_default()
            ),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_kind() {
        assert!(subdomain_errors("a.b-c").is_empty());
        assert_eq!(subdomain_errors("A_b").len(), 1);
        assert_eq!(subdomain_errors("a..b").len(), 1);
        assert!(label_errors("a.b").len() == 1 && label_1035_errors("1a").len() == 1);
        assert!(segment_errors("system:node").is_empty());
        assert!(qualified_errors("example.com/Name_1").is_empty());
        assert_eq!(qualified_errors("/x").len(), 1);
    }
}
