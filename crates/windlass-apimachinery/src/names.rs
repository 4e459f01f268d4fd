//! Names and keys: what is allowed, in Kubernetes' words.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const OLD_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const DOTTED: &str = "must not contain dots";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const DATA_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const SEARCH: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const ENV: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Why a name is no DNS subdomain (RFC 1123).
pub fn subdomain_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push("must be no more than 253 characters".to_owned());
    }
    if !is_subdomain(name) {
        errors.push(SUBDOMAIN.to_owned());
    }
    errors
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

/// `*.` and a subdomain.
pub fn wildcard_errors(name: &str) -> Vec<String> {
    let fits = name.strip_prefix("*.").is_some_and(is_subdomain);
    if fits {
        Vec::new()
    } else {
        vec![WILDCARD.to_owned()]
    }
}

/// A label that begins with a letter.
/// The same where its length is counted in bytes: names of kinds, plurals and versions.
pub fn label_1035_errors(name: &str) -> Vec<String> {
    let errors = old_label_errors(name).into_iter();
    errors
        .map(|error| error.replace("63 characters", "63 bytes"))
        .collect()
}

/// Why a name is no DNS label of the stricter kind.
pub fn old_label_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        errors.push(OLD_LABEL.to_owned());
    }
    errors
}

/// The name of a port.
pub fn port_name_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut wrong = |why: &str| errors.push(why.to_owned());
    if name.len() > 15 {
        wrong("must be no more than 15 characters");
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        wrong("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.chars().any(|c| c.is_ascii_lowercase()) {
        wrong("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        wrong("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong("must not begin or end with a hyphen");
    }
    errors
}

/// Why a name is no DNS label (RFC 1123).
pub fn label_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(name) {
        let dotted = name.split('.').all(is_label);
        errors.push(if dotted { DOTTED } else { LABEL }.to_owned());
    }
    errors
}

/// A search domain, in which underscores are let through.
pub fn search_errors(name: &str) -> Vec<String> {
    let part = |part: &str| {
        let plain = part.strip_prefix('_').unwrap_or(part);
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let edge =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(plain.chars().next()) && edge(plain.chars().last()) && plain.chars().all(inner)
    };
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push("must be no more than 253 characters".to_owned());
    }
    if !name.split('.').all(part) {
        errors.push(SEARCH.to_owned());
    }
    errors
}

/// The name of a container's port, which others may use for its number.
pub fn port_errors(name: &str) -> Vec<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let mut errors = Vec::new();
    let mut wrong = |is: bool, why: &str| {
        if is {
            errors.push(why.to_owned());
        }
    };
    wrong(name.len() > 15, "must be no more than 15 characters");
    wrong(
        name.is_empty() || !name.chars().all(allowed),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    wrong(
        !name.chars().any(|c| c.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    );
    wrong(name.contains("--"), "must not contain consecutive hyphens");
    wrong(
        name.starts_with('-') || name.ends_with('-'),
        "must not begin or end with a hyphen",
    );
    errors
}

/// The name of an environment variable: anything that can be printed, but no `=`.
pub fn env_errors(name: &str) -> Vec<String> {
    let allowed = |c: char| (c.is_ascii_graphic() || c == ' ') && c != '=';
    if name.chars().all(allowed) {
        Vec::new()
    } else {
        vec![ENV.to_owned()]
    }
}

/// The name of an HTTP header.
pub fn header_errors(name: &str) -> Vec<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if !name.is_empty() && name.chars().all(allowed) {
        Vec::new()
    } else {
        vec![HEADER.to_owned()]
    }
}

/// A name that only has to be one path segment.
pub fn segment_errors(name: &str) -> Vec<String> {
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
pub fn qualified_errors(key: &str) -> Vec<String> {
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
            if prefix.len() > 253 {
                errors.push("prefix part must be no more than 253 bytes".to_owned());
            }
            if !is_subdomain(prefix) {
                errors.push(format!("prefix part {SUBDOMAIN}"));
            }
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
pub fn label_value_errors(value: &str) -> Vec<String> {
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
pub fn data_key_errors(key: &str) -> Vec<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut errors = Vec::new();
    if key.len() > 253 {
        errors.push("must be no more than 253 characters".to_owned());
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
pub fn not_in_a_path(name: &str) -> Option<&'static str> {
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
