//! Short names for content: hashes that stay the same, and names that stay within limits.

use serde::Serialize;
use serde_json::Value;

/// Letters and digits that make no words: the alphabet of Kubernetes' own generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them a shortened name ends with.
const SHORT: usize = 8;

/// A short hash of a value: the same for equal values, in every process and every release.
///
/// For what should follow a change of content: as an annotation of a pod template it rolls out a
/// Deployment when the `ConfigMap` it reads changes.
///
/// ```
/// use std::collections::BTreeMap;
///
/// let one = windlass::hash_of(&BTreeMap::from([("mode", "fast")]));
/// let two = windlass::hash_of(&BTreeMap::from([("mode", "slow")]));
/// assert_eq!(one, "vvjhflxrx7sfsm");
/// assert_ne!(one, two);
/// ```
pub fn hash_of(value: &impl Serialize) -> String {
    let mut hash = Fnv::default();
    // What cannot be encoded has no content to follow: it hashes as nothing does.
    hash.value(&serde_json::to_value(value).unwrap_or_default());
    hash.letters(14)
}

/// A name made of parts, no longer than `limit`: what does not fit is cut off, and a hash of the
/// whole takes its place, so that two long names do not become one.
///
/// Labels, and the names of Services, have 63 characters, names of most other objects 253.
///
/// ```
/// assert_eq!(windlass::name_within(63, ["cache", "deployment"]), "cache-deployment");
/// let long = windlass::name_within(20, ["a-cache-with-a-long-name", "deployment"]);
/// assert_eq!(long, "a-cache-wit-z5z2bfps");
/// ```
pub fn name_within<'a>(limit: usize, parts: impl IntoIterator<Item = &'a str>) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let whole = parts.join("-");
    if whole.len() <= limit {
        return whole;
    }
    let mut hash = Fnv::default();
    hash.bytes(whole.as_bytes());
    let end = hash.letters(SHORT.min(limit));
    let room = limit.saturating_sub(end.len() + 1);
    let mut cut = room;
    while !whole.is_char_boundary(cut) {
        cut -= 1;
    }
    // A name must not have two separators in a row, nor begin with one.
    let begin = whole[..cut].trim_end_matches(['-', '.', '_']);
    if begin.is_empty() {
        end
    } else {
        format!("{begin}-{end}")
    }
}

/// FNV-1a with 64 bits: small, and written down for ever.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// A value, with the fields of maps in the order of their names.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                self.bytes(b"{");
                for (name, value) in fields {
                    self.bytes(name.as_bytes());
                    self.bytes(b"\0");
                    self.value(value);
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.value(item);
                }
                self.bytes(b"]");
            }
            scalar => {
                self.bytes(scalar.to_string().as_bytes());
                self.bytes(b"\0");
            }
        }
    }

    fn letters(&self, count: usize) -> String {
        let mut left = self.0;
        let letters = (0..count).map(|_| {
            let at = usize::try_from(left % 27).unwrap_or(0);
            left /= 27;
            ALPHABET.get(at).copied().map_or('b', char::from)
        });
        letters.collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_does_not_matter_and_everything_else_does() {
        let hash = |value: Value| hash_of(&value);
        assert_eq!(hash(json!({"a": 1, "b": 2})), hash(json!({"b": 2, "a": 1})));
        let all = [
            json!({"a": ["x", "y"]}),
            json!({"a": ["xy"]}),
            json!({"a": ["y", "x"]}),
            json!({"a": "x"}),
            json!({"a": {}}),
            json!({"a": null}),
            json!({}),
            json!(1),
            json!("1"),
        ];
        let mut hashes: Vec<String> = all.into_iter().map(hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 9);
    }

    proptest! {
        #[test]
        fn a_name_is_never_too_long_and_always_a_name(
            parts in prop::collection::vec("[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?", 1..6),
            limit in 10_usize..80,
        ) {
            let name = name_within(limit, parts.iter().map(String::as_str));
            prop_assert!(name.len() <= limit, "{name}");
            prop_assert!(name.starts_with(|c: char| c.is_ascii_alphanumeric()));
            prop_assert!(name.ends_with(|c: char| c.is_ascii_alphanumeric()));
            let whole = parts.join("-");
            prop_assert_eq!(whole.len() <= limit, name == whole);
        }
    }
}
