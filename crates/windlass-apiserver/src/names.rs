//! Names and keys: what is allowed, in Kubernetes' words.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DOTTED: &str = "must not contain dots";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const DATA_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

pub(crate) fn subdomain_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push("must be no more than 253 bytes".to_owned());
    }
    if !name.split('.').all(is_label) {
        errors.push(SUBDOMAIN.to_owned());
    }
    errors
}

pub(crate) fn label_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !is_label(name) {
        let dotted = name.split('.').all(is_label);
        errors.push(if dotted { DOTTED } else { LABEL }.to_owned());
    }
    errors
}

/// A name that only has to be one path segment.
pub(crate) fn segment_errors(name: &str) -> Vec<String> {
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
    edge(text.chars().next())
        && edge(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Label keys and annotation keys: an optional DNS prefix and a name.
pub(crate) fn qualified_errors(key: &str) -> Vec<String> {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if name.contains('/') {
        return vec![format!(
            "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )];
    }
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
        errors.push(format!("name part {KEY}"));
    }
    errors
}

/// The value of a label.
pub(crate) fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_qualified_part(value) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

/// The key of a `ConfigMap`'s or Secret's data.
pub(crate) fn data_key_errors(key: &str) -> Vec<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut errors = Vec::new();
    if key.len() > 253 {
        errors.push("must be no more than 253 bytes".to_owned());
    }
    if key.is_empty() || !key.chars().all(allowed) {
        errors.push(DATA_KEY.to_owned());
    }
    match key {
        "." => errors.push("must not be '.'".to_owned()),
        ".." => errors.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

/// Why a name cannot stand in a path.
pub(crate) fn not_in_a_path(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("may not be '.'"),
        ".." => Some("may not be '..'"),
        _ if name.contains('/') => Some("may not contain '/'"),
        _ if name.contains('%') => Some("may not contain '%'"),
        _ => None,
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
        assert_eq!(label_errors("a.b"), [DOTTED]);
        assert_eq!(label_errors("A.b"), [LABEL]);
        assert!(segment_errors("system:node").is_empty());
        assert!(qualified_errors("example.com/Name_1").is_empty());
        assert_eq!(qualified_errors("/x").len(), 1);
        assert!(qualified_errors("a/b/c")[0].starts_with("a valid label key"));
        assert_eq!(data_key_errors("..x").len(), 1);
    }
}
