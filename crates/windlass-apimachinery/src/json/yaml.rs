//! YAML that is JSON, as programs send it: read many times faster, where that reads the same.

use serde_json::Value;

use super::{Document, from_json};

/// YAML has a limit for keys that are told from values by a colon alone.
const LONGEST_KEY: usize = 1000;

/// The value of a YAML text that is JSON as well and means the same as both. There is none where
/// the two might differ: YAML knows fewer ways to write a character, more than one line, other
/// numbers, keys that stand for others, and tells of keys that are there twice.
pub(super) fn that_is_json(text: &str) -> Option<Value> {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~');
    if !text.starts_with('{') || !text.as_bytes().iter().all(plain) || text.contains("\\u") {
        return None;
    }
    let Document { value, duplicates } = from_json(text.as_bytes()).ok()?;
    (duplicates.is_empty() && is_plain(&value)).then_some(value)
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.is_i64(),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(members) => members
            .iter()
            .all(|(key, value)| key.len() < LONGEST_KEY && key != "<<" && is_plain(value)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{Plain, from_yaml};
    use super::*;

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            "[ -~]{0,12}".prop_map(Value::from),
            "(y|no|null|~|<<|1e3|0x1f|012|: |- a|#|2001-01-01|!!int 3)".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let key = prop_oneof![
                "[a-z]{1,8}",
                "[ -~]{0,8}",
                Just("<<".to_owned()),
                Just("on".to_owned())
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_reads_the_same_as_yaml(value in tree()) {
            let text = json!({"value": value}).to_string();
            if let Some(read) = that_is_json(&text) {
                let yaml: Plain = serde_saphyr::from_str(&text).unwrap();
                prop_assert_eq!(read, yaml.0);
            }
        }
    }

    #[test]
    fn where_they_may_differ_it_is_read_as_yaml() {
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"{"a": 1.0}"#,
            r#"{"a": 1e3}"#,
            r#"{"a": "\ud83d\ude00"}"#,
            "{\"a\"\n: 1}",
            "{\"a\":\t1}",
            r#"{"<<": {"a": 1}}"#,
            "a: 1",
            "{a: 1}",
            "",
        ] {
            assert_eq!(that_is_json(text), None, "{text}");
        }
        let text = r#"{"a": {"b": [1, -2, "no", true, null, "a\\b\"\n"]}}"#;
        let (value, twice) = from_yaml(text).unwrap();
        assert_eq!(
            value,
            json!({"a": {"b": [1, -2, "no", true, null, "a\\b\"\n"]}})
        );
        assert_eq!((that_is_json(text), twice), (Some(value), None));
    }
}
