//! Nodes to values, by way of JSON as Helm goes: keys become strings, and numbers floats.

use std::collections::BTreeMap;
use std::rc::Rc;

use base64::Engine as _;
use serde_json::{Map, Number, Value};

use super::compose::{Kind, Node, compose};
use super::resolve::{Scalar, Version, resolve};
use crate::number;

/// What a document says, before it is known what is wanted of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Yaml {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(String),
    List(Vec<Yaml>),
    Map(BTreeMap<String, Yaml>),
}

/// Reads the first document of a text; an empty one is null.
pub(crate) fn read(text: &[u8]) -> Result<Yaml, String> {
    let node = compose(text).map_err(|error| converting(&error.message()))?;
    match node {
        None => Ok(Yaml::Null),
        Some(node) => Decoder::default()
            .node(&node)
            .map_err(|why| converting(&why)),
    }
}

fn converting(why: &str) -> String {
    format!("error converting YAML to JSON: {why}")
}

/// What a document says as JSON: every number is a float.
pub(crate) fn to_json(yaml: Yaml) -> Result<Value, String> {
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => Value::Bool(value),
        #[expect(
            clippy::cast_precision_loss,
            reason = "Helm reads every number as a float"
        )]
        Yaml::Int(value) => float(value as f64)?,
        #[expect(
            clippy::cast_precision_loss,
            reason = "Helm reads every number as a float"
        )]
        Yaml::Uint(value) => float(value as f64)?,
        Yaml::Float(value) => float(value)?,
        Yaml::Str(text) => Value::String(text),
        Yaml::List(items) => {
            Value::Array(items.into_iter().map(to_json).collect::<Result<_, _>>()?)
        }
        Yaml::Map(entries) => Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| Ok((key, to_json(value)?)))
                .collect::<Result<Map<_, _>, String>>()?,
        ),
    })
}

/// What a document says as JSON of objects, as it is sent to a cluster: whole numbers are written
/// without a fraction.
pub(crate) fn to_object(yaml: Yaml) -> Result<Value, String> {
    Ok(match yaml {
        Yaml::Int(value) => Value::from(value),
        Yaml::Uint(value) => Value::from(value),
        Yaml::Float(value) => {
            whole(value).map_or_else(|| float(value), |value| Ok(value.into()))?
        }
        Yaml::List(items) => {
            Value::Array(items.into_iter().map(to_object).collect::<Result<_, _>>()?)
        }
        Yaml::Map(entries) => Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| Ok((key, to_object(value)?)))
                .collect::<Result<Map<_, _>, String>>()?,
        ),
        other => to_json(other)?,
    })
}

/// The whole number that a float is.
fn whole(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole and small enough"
    )]
    (value.fract() == 0.0 && value.abs() <= LIMIT).then_some(value as i64)
}

fn float(value: f64) -> Result<Value, String> {
    Number::from_f64(value).map(Value::Number).ok_or_else(|| {
        let shown = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        };
        converting(&format!("json: unsupported value: {shown}"))
    })
}

/// Counts what it decodes, so that aliases of aliases cannot make much of little.
#[derive(Default)]
struct Decoder {
    decoded: u32,
    aliased: u32,
    alias_depth: u32,
}

/// Which part of what is decoded may come out of aliases.
fn allowed_alias_ratio(decoded: f64) -> f64 {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    if decoded <= LOW {
        0.99
    } else if decoded >= HIGH {
        0.10
    } else {
        0.99 - 0.89 * ((decoded - LOW) / (HIGH - LOW))
    }
}

impl Decoder {
    fn node(&mut self, node: &Rc<Node>) -> Result<Yaml, String> {
        self.decoded += 1;
        if self.alias_depth > 0 {
            self.aliased += 1;
        }
        if self.aliased > 100
            && self.decoded > 1000
            && f64::from(self.aliased) / f64::from(self.decoded)
                > allowed_alias_ratio(f64::from(self.decoded))
        {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        match &node.kind {
            Kind::Alias(target) => {
                self.alias_depth += 1;
                let value = self.node(target);
                self.alias_depth -= 1;
                value
            }
            Kind::Scalar { value, implicit } => scalar(&node.tag, value, *implicit),
            Kind::Sequence(items) => Ok(Yaml::List(
                items
                    .iter()
                    .map(|item| self.node(item))
                    .collect::<Result<_, _>>()?,
            )),
            Kind::Mapping(entries) => {
                let mut map = BTreeMap::new();
                self.mapping(entries, &mut map)?;
                Ok(Yaml::Map(map))
            }
        }
    }

    fn mapping(
        &mut self,
        entries: &[(Rc<Node>, Rc<Node>)],
        map: &mut BTreeMap<String, Yaml>,
    ) -> Result<(), String> {
        for (key, value) in entries {
            if is_merge(key) {
                self.merge(value, map)?;
                continue;
            }
            let key = self.node(key)?;
            let value = self.node(value)?;
            let key = key_text(key, &value)?;
            map.insert(key, value);
        }
        Ok(())
    }

    fn merge(&mut self, from: &Rc<Node>, map: &mut BTreeMap<String, Yaml>) -> Result<(), String> {
        match &from.kind {
            Kind::Mapping(entries) => self.mapping(entries, map),
            Kind::Alias(target) if matches!(target.kind, Kind::Mapping(_)) => {
                self.alias_depth += 1;
                let merged = self.merge(target, map);
                self.alias_depth -= 1;
                merged
            }
            Kind::Sequence(items) => {
                // The first one wins, so it comes last.
                for item in items.iter().rev() {
                    let target = match &item.kind {
                        Kind::Alias(target) => target,
                        _ => item,
                    };
                    if !matches!(target.kind, Kind::Mapping(_)) {
                        return Err(WANT_MAP.to_owned());
                    }
                    self.merge(item, map)?;
                }
                Ok(())
            }
            _ => Err(WANT_MAP.to_owned()),
        }
    }
}

const WANT_MAP: &str = "yaml: map merge requires map or sequence of maps as the value";

fn is_merge(key: &Node) -> bool {
    matches!(&key.kind, Kind::Scalar { value, implicit } if value == "<<" && (*implicit || key.tag == "tag:yaml.org,2002:merge"))
}

/// A value as Go source, as the message of a key shows it.
fn go_syntax(value: &Yaml) -> String {
    match value {
        Yaml::Null => "interface {}(nil)".to_owned(),
        Yaml::Bool(flag) => flag.to_string(),
        Yaml::Int(int) => format!("{int:+}"),
        Yaml::Uint(int) => format!("{int:#x}"),
        Yaml::Float(float) => number::format_g(*float),
        Yaml::Str(text) => crate::quote::quote(text.as_bytes()),
        Yaml::List(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Yaml::Map(_) => "map[interface {}]interface {}".to_owned(),
    }
}

fn key_text(key: Yaml, value: &Yaml) -> Result<String, String> {
    Ok(match key {
        Yaml::Str(text) => text,
        Yaml::Int(value) => value.to_string(),
        Yaml::Bool(value) => value.to_string(),
        Yaml::Float(value) => float_text(value),
        Yaml::Null => {
            let shown = go_syntax(value);
            return Err(format!(
                "unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}"
            ));
        }
        Yaml::Uint(key) => {
            let shown = go_syntax(value);
            return Err(format!(
                "unsupported map key of type: uint64, key: {key:#x}, value: {shown}"
            ));
        }
        Yaml::List(_) | Yaml::Map(_) => return Err("yaml: invalid map key".to_owned()),
    })
}

/// A float as a string, of which Helm keeps what a small float can hold.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        ".nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "as Helm does")]
        number::format_g32(value as f32)
    }
}

fn scalar(tag: &str, value: &str, implicit: bool) -> Result<Yaml, String> {
    let short = tag.strip_prefix("tag:yaml.org,2002:");
    if tag.is_empty() && !implicit {
        return Ok(Yaml::Str(value.to_owned()));
    }
    match (tag, short) {
        (_, Some("str")) => return Ok(Yaml::Str(value.to_owned())),
        (_, Some("binary")) => {
            let decoded = base64::engine::general_purpose::STANDARD
                .decode(value.replace(['\n', '\r'], ""))
                .map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned())?;
            return Ok(Yaml::Str(String::from_utf8_lossy(&decoded).into_owned()));
        }
        ("", _) | (_, Some("bool" | "int" | "float" | "null" | "timestamp")) => {}
        _ => return Ok(Yaml::Str(value.to_owned())),
    }
    let (found, is_a) = match resolve(value, Version::Old) {
        Scalar::Null => (Yaml::Null, "null"),
        Scalar::Bool(value) => (Yaml::Bool(value), "bool"),
        Scalar::Int(value) => (Yaml::Int(value), "int"),
        Scalar::Uint(value) => (Yaml::Uint(value), "int"),
        Scalar::Float(value) => (Yaml::Float(value), "float"),
        Scalar::Timestamp => (Yaml::Str(value.to_owned()), "timestamp"),
        Scalar::Merge => (Yaml::Str(value.to_owned()), "merge"),
        Scalar::Str => (Yaml::Str(value.to_owned()), "str"),
    };
    match (short, found) {
        (None, found) => Ok(found),
        (Some(want), found) if want == is_a => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "the tag asks for a float")]
        (Some("float"), Yaml::Int(value)) => Ok(Yaml::Float(value as f64)),
        (Some(want), _) => Err(format!(
            "yaml: cannot decode !!{is_a} `{value}` as a !!{want}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json(text: &str) -> Value {
        to_json(read(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn plain_scalars_mean_what_yaml_1_1_says() {
        assert_eq!(
            json(
                "a: yes\nb: 0x10\nc: 017\nd: 1_000\ne: ~\nf: 1e3\ng: .5\nh: 'yes'\ni: 2020-01-01\nj: 1.2.3\n"
            ),
            json!({"a": true, "b": 16.0, "c": 15.0, "d": 1000.0, "e": null, "f": 1000.0, "g": 0.5,
                "h": "yes", "i": "2020-01-01", "j": "1.2.3"})
        );
    }

    #[test]
    fn scalars_fold_and_keep_lines() {
        assert_eq!(
            json(
                "a: |\n  x\n   y\n\n  z\nb: >-\n  x\n  y\n\n  z\nc: one\n  two\n\n  three\nd: \"a\\\n  b\"\n"
            ),
            json!({"a": "x\n y\n\nz\n", "b": "x y\nz", "c": "one two\nthree", "d": "ab"})
        );
    }

    #[test]
    fn collections_nest_and_merge() {
        assert_eq!(
            json(
                "x: &a {p: 1, q: [1, {r: s}, t: u]}\nw:\n  <<: *a\n  p: 2\nz:\n- a\n- - b\n  - c: d\n"
            ),
            json!({"x": {"p": 1.0, "q": [1.0, {"r": "s"}, {"t": "u"}]},
                "w": {"p": 2.0, "q": [1.0, {"r": "s"}, {"t": "u"}]},
                "z": ["a", ["b", {"c": "d"}]]})
        );
    }

    #[test]
    fn numbers_of_objects_are_whole_where_they_can_be() {
        let text = "{a: 80, b: 0x10, c: 9007199254740993, d: 1.0, e: 0.5, f: [18446744073709551615], g: 1e30}";
        let object = read(text.as_bytes()).and_then(to_object).unwrap();
        assert_eq!(
            object.to_string(),
            r#"{"a":80,"b":16,"c":9007199254740993,"d":1,"e":0.5,"f":[18446744073709551615],"g":1e+30}"#
        );
    }

    #[test]
    fn errors_name_the_line() {
        for (text, why) in [
            (
                "a: b\nc: d: e\n",
                "yaml: line 2: mapping values are not allowed in this context",
            ),
            (
                "a: b\n c: d\n",
                "yaml: line 2: mapping values are not allowed in this context",
            ),
            ("a: [b\n", "yaml: line 1: did not find expected ',' or ']'"),
            ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
            (
                "a: b\n\tc: d\n",
                "yaml: line 2: found a tab character that violates indentation",
            ),
        ] {
            assert_eq!(
                read(text.as_bytes()).unwrap_err(),
                converting(why),
                "{text}"
            );
        }
    }
}
