//! Where a check stands: a value and the way to it.
//!
//! The way is put into words only when something is wrong, so that checking a good object costs
//! no text. Each kind of field error is a method here; a value is shown as Go shows it.

use std::fmt;

use serde_json::{Map, Value};

use crate::status::{Cause, field};

/// What is wrong, in the order it was found.
pub(super) type Causes = Vec<Cause>;

static ABSENT: Value = Value::Null;

/// A value inside an object.
#[derive(Clone, Copy)]
pub(super) struct At<'p, 'v> {
    pub(super) value: &'v Value,
    parent: Option<&'p At<'p, 'v>>,
    step: Step<'p, 'v>,
}

#[derive(Clone, Copy)]
enum Step<'p, 'v> {
    Root(&'p str),
    Field(&'p str),
    /// A place in the list of that field.
    Item(&'p str, usize),
    /// An entry of the map of that field.
    Entry(&'p str, &'v str),
}

impl fmt::Display for At<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            let before = parent.to_string();
            f.write_str(&before)?;
            if !before.is_empty() {
                f.write_str(".")?;
            }
        }
        match self.step {
            Step::Root(text) | Step::Field(text) => f.write_str(text),
            Step::Item(field, index) => write!(f, "{field}[{index}]"),
            Step::Entry(field, key) => write!(f, "{field}[{key}]"),
        }
    }
}

impl<'p, 'v> At<'p, 'v> {
    /// A value that `path` leads to; the whole object when it is empty.
    pub(super) fn root(value: &'v Value, path: &'p str) -> Self {
        Self {
            value,
            parent: None,
            step: Step::Root(path),
        }
    }

    fn step<'a>(&'a self, value: &'v Value, step: Step<'a, 'v>) -> At<'a, 'v> {
        At {
            value,
            parent: Some(self),
            step,
        }
    }

    /// A field, absent or not.
    pub(super) fn child<'a>(&'a self, name: &'a str) -> At<'a, 'v> {
        self.step(self.value.get(name).unwrap_or(&ABSENT), Step::Field(name))
    }

    /// A field that is there.
    pub(super) fn get<'a>(&'a self, name: &'a str) -> Option<At<'a, 'v>> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(self.step(value, Step::Field(name)))
    }

    /// The items of a list.
    pub(super) fn items<'a>(&'a self, name: &'a str) -> impl Iterator<Item = At<'a, 'v>> {
        let list = self.value.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .enumerate()
            .map(move |(index, value)| self.step(value, Step::Item(name, index)))
    }

    /// The entries of a map.
    pub(super) fn entries<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'v str, At<'a, 'v>)> {
        let map = self.value.get(name).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .map(move |(key, value)| (key.as_str(), self.step(value, Step::Entry(name, key))))
    }

    /// A text field, empty when absent.
    pub(super) fn text(&self, name: &str) -> &'v str {
        self.value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.value.get(name).and_then(Value::as_i64)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(true))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|value| !value.is_null())
    }

    pub(super) fn list(&self, name: &str) -> &'v [Value] {
        let list = self.value.get(name).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    pub(super) fn map(&self, name: &str) -> Option<&'v Map<String, Value>> {
        self.value.get(name).and_then(Value::as_object)
    }

    /// The value itself is wrong.
    pub(super) fn invalid(&self, why: &str) -> Cause {
        field::invalid(self.to_string(), self.value, why)
    }

    /// The same, told of another value than the one here.
    pub(super) fn invalid_value(&self, value: impl Into<Value>, why: &str) -> Cause {
        field::invalid(self.to_string(), &value.into(), why)
    }

    /// The same for a value that is shown in another form than its JSON.
    pub(super) fn invalid_shown(&self, shown: &str, why: &str) -> Cause {
        field::invalid_shown(self.to_string(), shown, why)
    }

    pub(super) fn required(&self, why: &str) -> Cause {
        field::required(self.to_string(), why)
    }

    pub(super) fn forbidden(&self, why: &str) -> Cause {
        field::forbidden(self.to_string(), why)
    }

    pub(super) fn not_found(&self) -> Cause {
        field::not_found(self.to_string(), &self.text_or_empty())
    }

    pub(super) fn duplicate(&self) -> Cause {
        field::duplicate(self.to_string(), self.value)
    }

    pub(super) fn duplicate_value(&self, value: impl Into<Value>) -> Cause {
        field::duplicate(self.to_string(), &value.into())
    }

    /// None of the values there are.
    pub(super) fn not_supported(&self, allowed: &[&str]) -> Cause {
        self.not_supported_value(self.text_or_empty(), allowed)
    }

    /// The same, told of another value than the one here.
    pub(super) fn not_supported_value(&self, value: impl Into<Value>, allowed: &[&str]) -> Cause {
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

    /// Every complaint about the text here.
    pub(super) fn complain(&self, wrong: Vec<String>, causes: &mut Causes) {
        for why in wrong {
            causes.push(field::invalid(
                self.to_string(),
                &self.text_or_empty(),
                &why,
            ));
        }
    }

    /// A text that must be one of these, and be there.
    pub(super) fn one_of(&self, allowed: &[&str], causes: &mut Causes) {
        match self.value.as_str().unwrap_or_default() {
            "" => causes.push(self.required("")),
            text if allowed.contains(&text) => {}
            _ => causes.push(self.not_supported(allowed)),
        }
    }

    /// A text that must be one of these, if it is there.
    pub(super) fn one_of_if_set(&self, allowed: &[&str], causes: &mut Causes) {
        if let Some(text) = self.value.as_str()
            && !allowed.contains(&text)
        {
            causes.push(self.not_supported(allowed));
        }
    }

    /// A number that may not be below zero.
    pub(super) fn nonnegative(&self, causes: &mut Causes) {
        if self.value.as_i64().is_some_and(|number| number < 0) {
            causes.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    /// A number within bounds, if it is there.
    pub(super) fn between(&self, low: i64, high: i64, causes: &mut Causes) {
        if self
            .value
            .as_i64()
            .is_some_and(|number| !(low..=high).contains(&number))
        {
            causes.push(self.invalid(&format!("must be between {low} and {high}, inclusive")));
        }
    }
}

/// Several numbers that may not be below zero.
pub(super) fn nonnegative(at: &At<'_, '_>, names: &[&str], causes: &mut Causes) {
    for name in names {
        at.child(name).nonnegative(causes);
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
    }
}
