//! Where a check stands: a value and the way to it.
//!
//! The way is put into words only when something is wrong, so that checking a good object costs
//! no text. Each kind of field error is a method here; a value is shown as Go shows it.

use std::fmt;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::names;
use crate::status::{Cause, field};

/// What is wrong, in the order it was found.
pub(crate) type Causes = Vec<Cause>;

static ABSENT: Value = Value::Null;

/// A value inside an object.
#[derive(Clone)]
pub(crate) struct At<'p, 'v> {
    pub(crate) value: &'v Value,
    parent: Parent<'p, 'v>,
    step: Step<'p, 'v>,
}

/// Where a way goes on from: mostly a place that somebody holds, or else one that is held here.
#[derive(Clone)]
enum Parent<'p, 'v> {
    None,
    Borrowed(&'p At<'p, 'v>),
    Owned(Rc<At<'p, 'v>>),
}

#[derive(Clone, Copy)]
enum Step<'p, 'v> {
    Root(&'p str),
    Field(&'p str),
    /// A place in the list of that field.
    Item(&'p str, usize),
    /// An entry of the map of that field.
    Entry(&'p str, &'v str),
    /// A place in this very list.
    Index(usize),
    /// An entry of this very map.
    Key(&'p str),
}

impl fmt::Display for At<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = match &self.parent {
            Parent::None => String::new(),
            Parent::Borrowed(parent) => parent.to_string(),
            Parent::Owned(parent) => parent.to_string(),
        };
        f.write_str(&before)?;
        let is_part = matches!(self.step, Step::Index(_) | Step::Key(_));
        if !before.is_empty() && !is_part {
            f.write_str(".")?;
        }
        match self.step {
            Step::Root(text) | Step::Field(text) => f.write_str(text),
            Step::Item(field, index) => write!(f, "{field}[{index}]"),
            Step::Entry(field, key) => write!(f, "{field}[{key}]"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

impl<'p, 'v> At<'p, 'v> {
    /// A value that `path` leads to; the whole object when it is empty.
    pub(crate) fn root(value: &'v Value, path: &'p str) -> Self {
        Self {
            value,
            parent: Parent::None,
            step: Step::Root(path),
        }
    }

    /// The same place with another value: what is shown there, or checked in its stead.
    pub(crate) fn with(&self, value: &'v Value) -> Self {
        Self {
            value,
            ..self.clone()
        }
    }

    fn step<'a>(&'a self, value: &'v Value, step: Step<'a, 'v>) -> At<'a, 'v> {
        At {
            value,
            parent: Parent::Borrowed(self),
            step,
        }
    }

    /// A field of a place that nobody else holds.
    pub(crate) fn then(self, name: &'p str) -> Self {
        Self {
            value: self.value.get(name).unwrap_or(&ABSENT),
            parent: Parent::Owned(Rc::new(self)),
            step: Step::Field(name),
        }
    }

    /// An entry of a map that nobody else holds.
    pub(crate) fn then_key(self, key: &'p str) -> Self {
        Self {
            value: self.value.get(key).unwrap_or(&ABSENT),
            parent: Parent::Owned(Rc::new(self)),
            step: Step::Key(key),
        }
    }

    /// An entry of this map, named as Kubernetes names it: `data[key]`.
    pub(crate) fn key<'a>(&'a self, key: &'a str) -> At<'a, 'v> {
        self.step(self.value.get(key).unwrap_or(&ABSENT), Step::Key(key))
    }

    /// The elements of this list.
    pub(crate) fn elements<'a>(&'a self) -> impl Iterator<Item = At<'a, 'v>> {
        let items = self.value.as_array().into_iter().flatten();
        items
            .enumerate()
            .map(move |(index, value)| self.step(value, Step::Index(index)))
    }

    /// The keys of this map.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'v str> + use<'v> {
        let map = self.value.as_object().into_iter();
        map.flat_map(|map| map.keys().map(String::as_str))
    }

    /// The way in words.
    pub(crate) fn path(&self) -> String {
        self.to_string()
    }

    pub(crate) fn as_text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    pub(crate) fn as_int(&self) -> i64 {
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

    /// A field, absent or not.
    pub(crate) fn child<'a>(&'a self, name: &'a str) -> At<'a, 'v> {
        self.step(self.value.get(name).unwrap_or(&ABSENT), Step::Field(name))
    }

    /// A field that is there.
    pub(crate) fn get<'a>(&'a self, name: &'a str) -> Option<At<'a, 'v>> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(self.step(value, Step::Field(name)))
    }

    /// The items of a list.
    pub(crate) fn items<'a>(&'a self, name: &'a str) -> impl Iterator<Item = At<'a, 'v>> {
        let list = self.value.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .enumerate()
            .map(move |(index, value)| self.step(value, Step::Item(name, index)))
    }

    /// The entries of a map.
    pub(crate) fn entries<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'v str, At<'a, 'v>)> {
        let map = self.value.get(name).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .map(move |(key, value)| (key.as_str(), self.step(value, Step::Entry(name, key))))
    }

    /// A text field, empty when absent.
    pub(crate) fn text(&self, name: &str) -> &'v str {
        self.value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.value.get(name).and_then(Value::as_i64)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(true))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn list(&self, name: &str) -> &'v [Value] {
        let list = self.value.get(name).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    pub(crate) fn map(&self, name: &str) -> Option<&'v Map<String, Value>> {
        self.value.get(name).and_then(Value::as_object)
    }

    /// The value itself is wrong.
    pub(crate) fn invalid(&self, why: &str) -> Cause {
        field::invalid(self.to_string(), self.value, why)
    }

    /// The same, told of another value than the one here.
    pub(crate) fn invalid_value(&self, value: impl Into<Value>, why: &str) -> Cause {
        field::invalid(self.to_string(), &value.into(), why)
    }

    /// The same for a value that is shown in another form than its JSON.
    pub(crate) fn invalid_shown(&self, shown: &str, why: &str) -> Cause {
        field::invalid_shown(self.to_string(), shown, why)
    }

    pub(crate) fn required(&self, why: &str) -> Cause {
        field::required(self.to_string(), why)
    }

    pub(crate) fn forbidden(&self, why: &str) -> Cause {
        field::forbidden(self.to_string(), why)
    }

    pub(crate) fn not_found(&self) -> Cause {
        field::not_found(self.to_string(), &self.text_or_empty())
    }

    pub(crate) fn duplicate(&self) -> Cause {
        field::duplicate(self.to_string(), self.value)
    }

    pub(crate) fn duplicate_value(&self, value: impl Into<Value>) -> Cause {
        field::duplicate(self.to_string(), &value.into())
    }

    /// None of the values there are.
    pub(crate) fn not_supported(&self, allowed: &[&str]) -> Cause {
        self.not_supported_value(self.text_or_empty(), allowed)
    }

    /// The same, told of another value than the one here.
    pub(crate) fn not_supported_value(&self, value: impl Into<Value>, allowed: &[&str]) -> Cause {
        let quoted: Vec<String> = allowed.iter().map(|one| format!("\"{one}\"")).collect();
        field::not_supported(self.to_string(), &value.into(), &quoted)
    }

    /// The value; an absent text is an empty one.
    fn text_or_empty(&self) -> Value {
        if self.value.is_null() {
            "".into()
        } else {
            self.value.clone()
        }
    }

    /// A text is wrong, which is empty when it was left out.
    pub(crate) fn invalid_text(&self, why: &str) -> Cause {
        self.invalid_value(self.as_text(), why)
    }

    /// A number is wrong, which is zero when it was left out.
    pub(crate) fn invalid_int(&self, why: &str) -> Cause {
        self.invalid_value(self.as_int(), why)
    }

    /// One cause for each thing a check of the text found.
    pub(crate) fn each(&self, check: impl Fn(&str) -> Vec<String>, causes: &mut Causes) {
        let wrong = check(self.as_text());
        causes.extend(wrong.iter().map(|why| self.invalid_text(why)));
    }

    /// A text that must be there and stand a check.
    pub(crate) fn name(&self, check: impl Fn(&str) -> Vec<String>, causes: &mut Causes) {
        if self.as_text().is_empty() {
            causes.push(self.required(""));
        } else {
            self.each(check, causes);
        }
    }

    /// The number of a port.
    pub(crate) fn port_number(&self, causes: &mut Causes) {
        if !(1..=65535).contains(&self.as_int()) {
            causes.push(self.invalid_int(PORT_RANGE));
        }
    }

    /// The number or the name of a port.
    pub(crate) fn port(&self, causes: &mut Causes) {
        if self.value.is_string() {
            self.each(names::port_name_errors, causes);
        } else {
            self.port_number(causes);
        }
    }

    /// Every complaint about the text here.
    pub(crate) fn complain(&self, wrong: Vec<String>, causes: &mut Causes) {
        for why in wrong {
            causes.push(field::invalid(
                self.to_string(),
                &self.text_or_empty(),
                &why,
            ));
        }
    }

    /// A text that must be one of these, and be there.
    pub(crate) fn one_of(&self, allowed: &[&str], causes: &mut Causes) {
        match self.value.as_str().unwrap_or_default() {
            "" => causes.push(self.required("")),
            text if allowed.contains(&text) => {}
            _ => causes.push(self.not_supported(allowed)),
        }
    }

    /// A text that must be one of these, if it is there.
    pub(crate) fn one_of_if_set(&self, allowed: &[&str], causes: &mut Causes) {
        if let Some(text) = self.value.as_str()
            && !allowed.contains(&text)
        {
            causes.push(self.not_supported(allowed));
        }
    }

    /// A number that may not be below zero.
    pub(crate) fn nonnegative(&self, causes: &mut Causes) {
        if self.value.as_i64().is_some_and(|number| number < 0) {
            causes.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// A number within bounds, if it is there.
    pub(crate) fn between(&self, low: i64, high: i64, causes: &mut Causes) {
        if self
            .value
            .as_i64()
            .is_some_and(|number| !(low..=high).contains(&number))
        {
            causes.push(self.invalid(&format!("must be between {low} and {high}, inclusive")));
        }
    }
}

pub(crate) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// A field that an update left other than it was.
pub(crate) fn immutable(new: &At<'_, '_>, old: &At<'_, '_>, causes: &mut Causes) {
    if new.value != old.value {
        causes.push(new.invalid(IMMUTABLE));
    }
}

/// Several numbers that may not be below zero.
pub(crate) fn nonnegative(at: &At<'_, '_>, names: &[&str], causes: &mut Causes) {
    for name in names {
        at.child(name).nonnegative(causes);
    }
}

/// A field of the object itself that may not change.
pub(crate) fn immutable_field(new: &Value, old: &Value, name: &str, causes: &mut Causes) {
    if new[name] != old[name] {
        causes.push(field::invalid(name, &new[name], "field is immutable"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_way_is_told_as_kubernetes_tells_it() {
        let spec = json!({"containers": [{"resources": {"limits": {"cpu": "-1"}}}]});
        let spec = At::root(&spec, "spec");
        let container = spec.items("containers").next().unwrap();
        let resources = container.child("resources");
        let (key, limit) = resources.entries("limits").next().unwrap();
        assert_eq!(key, "cpu");
        assert_eq!(
            limit.to_string(),
            "spec.containers[0].resources.limits[cpu]"
        );
        assert_eq!(
            At::root(&json!({}), "").child("handler").required("").field,
            "handler"
        );
        let data = json!({"data": {"list": [{"name": 1}]}});
        let list = At::root(&data, "").then("data").then_key("list");
        let names: Vec<String> = list
            .elements()
            .map(|item| item.then("name").path())
            .collect();
        assert_eq!(names, ["data[list][0].name"]);
    }
}
