//! [`hash_of`]: a short name for a value, to tell when it has become another.

use serde::Serialize;
use serde_json::Value;

use crate::{Error, Result};

/// The offset and the prime of FNV-1a with 64 bits, the family Kubernetes names pod templates with.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Sixteen hexadecimal digits that follow from a value alone: the same in every process, on every
/// machine and in every later version. In an annotation of a pod template, the hash of a
/// configuration rolls out the pods when it changes.
///
/// Fields are taken in the order of their names, and a field that is absent is as one that is null,
/// so that a new optional field changes no hash. It tells changes apart; it is not for secrets.
///
/// ```
/// # use std::collections::BTreeMap;
/// let data = BTreeMap::from([("greeting", "hello")]);
/// assert_eq!(windlass::hash_of(&data)?, "b7dbc55c9cc74cdb");
/// # Ok::<(), windlass::Error>(())
/// ```
pub fn hash_of(value: &(impl Serialize + ?Sized)) -> Result<String> {
    let value = serde_json::to_value(value).map_err(|source| Error::Codec {
        verb: "encode",
        object: "a value to be hashed".to_owned(),
        source,
    })?;
    let mut state = OFFSET;
    add(&mut state, &value);
    Ok(format!("{state:016x}"))
}

/// Every part is delimited, so that no two values are written alike.
fn add(state: &mut u64, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().filter(|(_, of)| !of.is_null()).collect();
            fields.sort_unstable_by_key(|(name, _)| name.as_str());
            write(state, b"{");
            for (name, of) in fields {
                write(state, Value::from(name.as_str()).to_string().as_bytes());
                write(state, b":");
                add(state, of);
            }
            write(state, b"}");
        }
        Value::Array(items) => {
            write(state, b"[");
            for item in items {
                add(state, item);
                write(state, b",");
            }
            write(state, b"]");
        }
        scalar => write(state, scalar.to_string().as_bytes()),
    }
}

fn write(state: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *state = (*state ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hash(value: &Value) -> String {
        hash_of(value).unwrap()
    }

    #[test]
    fn a_hash_follows_from_the_value_alone() {
        assert_eq!(
            hash(&json!({"a": 1, "b": 2})),
            hash(&json!({"b": 2, "a": 1}))
        );
        assert_eq!(hash(&json!({"a": 1, "b": null})), hash(&json!({"a": 1})));
        assert_ne!(hash(&json!({"a": ""})), hash(&json!({})));
    }

    #[test]
    fn what_differs_only_in_where_it_is_cut_differs() {
        let all = [
            json!(["a", "b"]),
            json!(["a,b"]),
            json!([["a"], "b"]),
            json!({"a": "b"}),
            json!("a"),
            json!(["ab"]),
            json!(1),
            json!("1"),
        ];
        let hashes: std::collections::BTreeSet<String> = all.iter().map(hash).collect();
        assert_eq!(hashes.len(), all.len());
    }
}
