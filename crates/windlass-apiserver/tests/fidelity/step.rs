//! What steps are made of.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::case::{Identity, Step};
use crate::dice::Dice;
use crate::kinds::Kind;

/// An object with nothing changed.
pub(crate) fn plain(kind: &Kind, short: &str) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion".into(), kind.api.clone().into());
    object.insert("kind".into(), kind.kind.clone().into());
    object.insert(
        "metadata".into(),
        json!({"name": kind.name(short), "labels": {"app": "a", "seq": "{seq}"}}),
    );
    if let Value::Object(base) = &kind.base {
        object.extend(base.clone());
    }
    object.into()
}

pub(crate) fn dice_value(dice: &mut Dice, of: &[Value]) -> Value {
    dice.one(of).clone()
}

pub(crate) fn request(name: String, method: &str, path: String) -> Step {
    Step {
        name,
        method: method.into(),
        path,
        query: BTreeMap::new(),
        headers: BTreeMap::new(),
        content_type: None,
        patch: None,
        setup: false,
        after_millis: 0,
        body: None,
        raw_body: None,
        base64_body: None,
        long_body: None,
        hex_body: None,
        identity: Identity::Admin,
        capture: BTreeMap::new(),
        watch: None,
        until: None,
        keep: None,
        generated: None,
    }
}
