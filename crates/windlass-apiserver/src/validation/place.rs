//! A place in an object: what stands there, and the path by which a cause names it.

use serde_json::Value;

use crate::names;
use crate::status::{Cause, field};

static NOTHING: Value = Value::Null;

/// A value and its path.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub(crate) path: String,
    pub(crate) value: &'a Value,
}

impl<'a> At<'a> {
    /// The whole of an object.
    pub(crate) fn root(value: &'a Value) -> Self {
        Self::new("", value)
    }

    pub(crate) fn new(path: impl Into<String>, value: &'a Value) -> Self {
        Self {
            path: path.into(),
            value,
        }
    }

    /// The path of a field below this one, whether there is one or not.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// A field; null when it is absent.
    pub(crate) fn get(&self, name: &str) -> Self {
        Self::new(self.path_of(name), self.value.get(name).unwrap_or(&NOTHING))
    }

    /// An entry of a map, named as Kubernetes names it: `data[key]`.
    pub(crate) fn key(&self, key: &str) -> Self {
        Self::new(
            format!("{}[{key}]", self.path),
            self.value.get(key).unwrap_or(&NOTHING),
        )
    }

    /// The elements of a list.
    pub(crate) fn items(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let path = self.path.clone();
        let items = self.value.as_array().into_iter().flatten();
        items
            .enumerate()
            .map(move |(index, item)| At::new(format!("{path}[{index}]"), item))
    }

    /// The keys of a map.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let map = self.value.as_object().into_iter();
        map.flat_map(|map| map.keys().map(String::as_str))
    }

    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(crate) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            Value::String(text) => text.len(),
            _ => 0,
        }
    }

    /// Whether the field was given at all.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether it is what Go has in a field that nobody set: nothing, zero, an empty text or list.
    pub(crate) fn is_zero(&self) -> bool {
        match self.value {
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Bool(truth) => !truth,
            _ => self.len() == 0,
        }
    }

    pub(crate) fn invalid(&self, why: &str) -> Cause {
        field::invalid(self.path.as_str(), self.value, why)
    }

    /// The same for a text, which is empty when it was left out.
    pub(crate) fn invalid_text(&self, why: &str) -> Cause {
        field::invalid(self.path.as_str(), &self.text().into(), why)
    }

    /// The same for a number, which is zero when it was left out.
    pub(crate) fn invalid_int(&self, why: &str) -> Cause {
        field::invalid(self.path.as_str(), &self.int().into(), why)
    }

    pub(crate) fn required(&self, why: &str) -> Cause {
        field::required(self.path.as_str(), why)
    }

    pub(crate) fn forbidden(&self, why: &str) -> Cause {
        field::forbidden(self.path.as_str(), why)
    }

    pub(crate) fn duplicate(&self) -> Cause {
        field::duplicate(self.path.as_str(), self.value)
    }

    pub(crate) fn unsupported(&self, allowed: &[&str]) -> Cause {
        let allowed: Vec<String> = allowed.iter().map(|one| format!("{one:?}")).collect();
        let shown = if self.is_set() {
            self.value.clone()
        } else {
            "".into()
        };
        field::not_supported(self.path.as_str(), &shown, &allowed)
    }

    /// One cause for each thing a check of the text found.
    pub(crate) fn each(&self, check: impl Fn(&str) -> Vec<String>, causes: &mut Vec<Cause>) {
        let wrong = check(self.text());
        causes.extend(wrong.iter().map(|why| self.invalid_text(why)));
    }

    /// One of some texts; must be there.
    pub(crate) fn one_of(&self, allowed: &[&str], causes: &mut Vec<Cause>) {
        if self.text().is_empty() {
            causes.push(self.required(""));
        } else if !allowed.contains(&self.text()) {
            causes.push(self.unsupported(allowed));
        }
    }

    /// One of some texts, if it is there.
    pub(crate) fn maybe_one_of(&self, allowed: &[&str], causes: &mut Vec<Cause>) {
        if self.is_set() && !allowed.contains(&self.text()) {
            causes.push(self.unsupported(allowed));
        }
    }

    /// The number of a port.
    pub(crate) fn port_number(&self, causes: &mut Vec<Cause>) {
        if !(1..=65535).contains(&self.int()) {
            causes.push(self.invalid_int(PORT_RANGE));
        }
    }

    /// The number or the name of a port.
    pub(crate) fn port(&self, causes: &mut Vec<Cause>) {
        if self.value.is_string() {
            self.each(names::port_name_errors, causes);
        } else {
            self.port_number(causes);
        }
    }

    /// A text that must be there and stand a check.
    pub(crate) fn name(&self, check: impl Fn(&str) -> Vec<String>, causes: &mut Vec<Cause>) {
        if self.text().is_empty() {
            causes.push(self.required(""));
        } else {
            self.each(check, causes);
        }
    }
}

pub(crate) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// A field that an update left other than it was.
pub(crate) fn immutable(new: &At<'_>, old: &At<'_>, causes: &mut Vec<Cause>) {
    if new.value != old.value {
        causes.push(new.invalid(IMMUTABLE));
    }
}
