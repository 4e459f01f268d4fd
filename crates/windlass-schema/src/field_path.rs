//! Paths to fields that a definition names: in rules and in selectable fields.

use super::error::PathError;
use super::path;
use super::schema::Schema;

/// The field a path leads to, as Kubernetes writes it and as the schema describes it; or why it
/// leads nowhere. `['name']` is understood where `brackets` allows it.
pub(super) fn find<'a>(
    text: &str,
    schema: &'a Schema,
    brackets: bool,
) -> Result<(String, &'a Schema), PathError> {
    let mut tokens = tokens(text).into_iter();
    let (mut at, mut schema) = (String::new(), schema);
    while let Some(token) = tokens.next() {
        let name = match token.as_str() {
            "[" if !brackets => return Err(PathError::Brackets),
            "[" => {
                let quoted = tokens.next().ok_or(PathError::End)?;
                let name = quoted
                    .strip_prefix('\'')
                    .and_then(|rest| rest.strip_suffix('\''))
                    .ok_or_else(|| PathError::NotQuoted(quoted.clone()))?;
                let name = unescape(name)?;
                let next = tokens.next().ok_or(PathError::End)?;
                if next != "]" {
                    return Err(PathError::NotClosed(next));
                }
                name
            }
            "." => tokens.next().ok_or(PathError::End)?,
            other => return Err(PathError::NoStep(other.to_owned())),
        };
        if schema.properties.is_empty() {
            at = path::key(&at, &name);
            schema = schema.values().ok_or(PathError::Nowhere)?;
        } else {
            at = path::child(&at, &name);
            schema = schema.properties.get(&name).ok_or(PathError::Nowhere)?;
        }
    }
    Ok((at, schema))
}

/// Dots, brackets, quoted texts, and what is between them.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let mut escaped = false;
                rest.char_indices()
                    .skip(1)
                    .find(|(_, c)| {
                        let ends = *c == '\'' && !escaped;
                        escaped = *c == '\\';
                        ends
                    })
                    .map_or(rest.len(), |(at, _)| at + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token.to_owned());
        rest = after;
    }
    tokens
}

fn unescape(text: &str) -> Result<String, PathError> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        plain.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(quoted @ ('\'' | '\\')) => quoted,
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(PathError::Escape(other));
            }
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn schema() -> Schema {
        serde_json::from_value(json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        }}))
        .unwrap()
    }

    #[test]
    fn paths_lead_to_fields_and_entries() {
        let schema = schema();
        let find = |text: &str| find(text, &schema, true).map(|(at, _)| at);
        assert_eq!(find(".a['b.c']").unwrap(), "a.b.c");
        assert_eq!(find(".m['x']").unwrap(), "m[x]");
        assert!(find(".a.z").is_err());
        assert_eq!(find("a"), Err(PathError::NoStep("a".into())));
        assert!(super::find(".a['b.c']", &schema, false).is_err());
    }

    proptest! {
        #[test]
        fn no_path_panics(text in ".{0,40}") {
            let _ = find(&text, &schema(), true);
        }
    }
}
