//! JSON and YAML bodies as trees, telling of fields that are said twice.

mod syntax;
mod yaml;

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::findings::Findings;
use crate::findings::MOST_STRANGE;
use crate::place::Place;
use crate::steps::step;

/// How deep a body may be nested. What is stored adds some levels of its own, and must still be
/// readable by everybody: most JSON readers stop at 128.
pub const MAX_DEPTH: usize = 100;

/// A body that was read.
#[derive(Debug, Default)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// The paths of fields that were said more than once; the last time counts.
    pub duplicates: Vec<String>,
}

/// Reads JSON, also with bytes in its texts that stand for no character: they are replaced, as Go
/// does.
pub fn from_json(bytes: &[u8]) -> Result<Document, serde_json::Error> {
    read_json(bytes).or_else(|error| match syntax::mended(bytes) {
        Some(mended) if syntax::check(bytes, MAX_DEPTH).is_ok() => read_json(&mended),
        _ => Err(error),
    })
}

fn read_json(bytes: &[u8]) -> Result<Document, serde_json::Error> {
    let mut duplicates = Findings::at_most(MOST_STRANGE);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Tree::root(&mut duplicates).deserialize(&mut reader)?;
    reader.end()?;
    Ok(Document {
        value,
        duplicates: duplicates.into_texts(),
    })
}

/// Reads YAML, in the dialect Kubernetes reads: `y` and `no` are booleans, also as keys. With it
/// comes the first key that a map has twice, in the words of the reader that Kubernetes uses.
pub fn from_yaml(text: &str) -> Result<(Value, Option<String>), serde_saphyr::Error> {
    if let Some(value) = yaml::that_is_json(text) {
        return Ok((value, None));
    }
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::Error };
    let error = match serde_saphyr::from_str_with_options::<Plain>(text, options) {
        Ok(plain) => return Ok((plain.0, None)),
        Err(error) => error,
    };
    let serde_saphyr::Error::DuplicateMappingKey { key, location } = error.without_snippet() else {
        return Err(error);
    };
    let (key, line) = (key.as_deref().unwrap_or_default(), location.line());
    let repeated = format!("line {line}: key {key:?} already set in map");
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let plain = serde_saphyr::from_str_with_options::<Plain>(text, options)?;
    Ok((plain.0, Some(repeated)))
}

struct Plain(Value);

impl<'de> de::Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut duplicates = Findings::at_most(0);
        Tree::root(&mut duplicates)
            .deserialize(deserializer)
            .map(Self)
    }
}

/// The value of a member of an object, as it stands in its compact JSON, which must be well-formed.
pub fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = object.strip_prefix(b"{")?;
    loop {
        let (key, after) = rest.split_at_checked(end_of_value(rest)?)?;
        let value = after.strip_prefix(b":")?;
        let (value, after) = value.split_at_checked(end_of_value(value)?)?;
        if key.strip_prefix(b"\"")?.strip_suffix(b"\"")? == name.as_bytes() {
            return Some(value);
        }
        rest = after.strip_prefix(b",")?;
    }
}

/// Where the value ends that well-formed JSON starts with.
fn end_of_value(json: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match json.get(at)? {
            b'"' => {
                at += 1;
                while *json.get(at)? != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            // A number or a word: it ends where something else begins.
            _ if depth == 0 => {
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':');
                let length = json[at..].iter().position(ends);
                return Some(length.map_or(json.len(), |length| at + length));
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// How Go names what went wrong with a JSON text.
pub fn go_error(error: &serde_json::Error, bytes: &[u8]) -> String {
    syntax::check(bytes, MAX_DEPTH)
        .err()
        .unwrap_or_else(|| error.to_string())
}

/// How deep a tree is nested; `values` grows by how many values there are in it.
pub fn depth(value: &Value, values: &mut usize) -> usize {
    step();
    *values += 1;
    let mut deepest = |inner: &Value| depth(inner, values);
    match value {
        Value::Array(items) => 1 + items.iter().map(deepest).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(&mut deepest).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Builds a tree, knowing where in it it is.
struct Tree<'a> {
    place: Place<'a>,
    depth: usize,
    duplicates: &'a mut Findings,
}

impl<'a> Tree<'a> {
    fn root(duplicates: &'a mut Findings) -> Self {
        Self {
            place: Place::Root,
            depth: 0,
            duplicates,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        step();
        if self.depth > MAX_DEPTH {
            return Err(de::Error::custom("exceeded max depth"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let item = Tree {
                place: Place::Item(&self.place, list.len()),
                depth: self.depth + 1,
                duplicates: self.duplicates,
            };
            match items.next_element_seed(item)? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(Key(key)) = entries.next_key()? {
            let place = Place::Field(&self.place, &key);
            if map.contains_key(&key) {
                self.duplicates.add(|| place.path());
            }
            let value = entries.next_value_seed(Tree {
                place,
                depth: self.depth + 1,
                duplicates: self.duplicates,
            })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// A key, which YAML lets be any scalar.
struct Key(String);

impl<'de> de::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyScalar;
        impl Visitor<'_> for AnyScalar {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_bool<E>(self, key: bool) -> Result<Key, E> {
                Ok(Key(key.to_string()))
            }

            fn visit_i64<E>(self, key: i64) -> Result<Key, E> {
                Ok(Key(key.to_string()))
            }

            fn visit_u64<E>(self, key: u64) -> Result<Key, E> {
                Ok(Key(key.to_string()))
            }

            fn visit_f64<E>(self, key: f64) -> Result<Key, E> {
                Ok(Key(key.to_string()))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key, E> {
                Ok(Key(key.to_owned()))
            }

            fn visit_string<E>(self, key: String) -> Result<Key, E> {
                Ok(Key(key))
            }

            fn visit_unit<E>(self) -> Result<Key, E> {
                Ok(Key("null".to_owned()))
            }
        }
        deserializer.deserialize_any(AnyScalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_last_of_two_counts_and_both_are_told() {
        let read = from_json(br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": 3}"#).unwrap();
        assert_eq!(read.value, json!({"a": 3, "b": [{"c": 2}]}));
        assert_eq!(read.duplicates, ["b[0].c", "a"]);
        assert!(from_json(b"{} {}").is_err());
    }

    #[test]
    fn a_member_is_found_without_making_a_tree() {
        let object = json!({
            "a": "}]\"{,", "b": {"metadata": 1}, "c": [[], {}, "metadata"], "d": -1.5, "e": null,
            "metadata": {"name": "x\\", "labels": {"metadata": ","}}, "z": true,
        });
        for text in [object.to_string(), json!({"metadata": []}).to_string()] {
            let object: Value = serde_json::from_str(&text).unwrap();
            for (name, value) in object.as_object().unwrap() {
                let found = member(text.as_bytes(), name).unwrap();
                assert_eq!(serde_json::from_slice::<Value>(found).unwrap(), *value);
            }
            assert_eq!(member(text.as_bytes(), "name"), None);
        }
        for cut in [
            &b""[..],
            b"{",
            b"{}",
            b"{\"a",
            b"{\"a\":",
            b"{\"a\":[1",
            b"{\"a\":\"\\",
            b"[]",
        ] {
            assert_eq!(member(cut, "b"), None);
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let read = from_json(nested(MAX_DEPTH).as_bytes()).unwrap();
        assert_eq!(depth(&read.value, &mut 0), MAX_DEPTH);
        for levels in [MAX_DEPTH + 2, 10_000] {
            assert!(from_json(nested(levels).as_bytes()).is_err());
            assert!(from_yaml(&nested(levels)).is_err());
        }
    }

    #[test]
    fn yaml_keys_may_be_scalars() {
        assert_eq!(
            from_yaml("1: a\ny: b\nz: [no, 'no']").unwrap().0,
            json!({"1": "a", "true": "b", "z": [false, "no"]})
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let error = from_json(text.as_bytes()).err();
            let _ = error.map(|error| go_error(&error, text.as_bytes()));
            let _ = from_yaml(&text);
        }
    }
}
