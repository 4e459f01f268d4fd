//! What a hook answers.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use windlass::Event;

/// The fields of an answer of a composite controller's hook.
pub(super) const COMPOSITE: &[&str] = &[
    "status",
    "children",
    "resyncAfterSeconds",
    "finalized",
    "events",
];
/// The fields of an answer of a decorator controller's hook.
pub(super) const DECORATOR: &[&str] = &[
    "status",
    "attachments",
    "labels",
    "annotations",
    "resyncAfterSeconds",
    "finalized",
    "events",
];
/// The fields of an answer of a customize hook.
pub(super) const CUSTOMIZE: &[&str] = &["relatedResources"];

/// An answer of a sync or finalize hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answered {
    pub(super) status: Option<Value>,
    pub(super) children: Vec<Value>,
    pub(super) labels: BTreeMap<String, Option<String>>,
    pub(super) annotations: BTreeMap<String, Option<String>>,
    pub(super) again: Option<Duration>,
    pub(super) finalized: bool,
    pub(super) events: Vec<Event>,
}

impl Answered {
    /// Reads an answer, whose objects are under `children` or `attachments`.
    pub(super) fn of(answer: &Value, objects: &str) -> Result<Self, String> {
        let wrong = |field: &str, wanted: &str| format!("the answer's {field} is not {wanted}");
        let status = match &answer["status"] {
            Value::Null => None,
            status @ Value::Object(_) => Some(status.clone()),
            _ => return Err(wrong("status", "an object")),
        };
        let children = match &answer[objects] {
            Value::Null => Vec::new(),
            Value::Array(children) if children.iter().all(Value::is_object) => children.clone(),
            _ => return Err(wrong(objects, "a list of objects")),
        };
        let marks = |field: &str| {
            let mut marks = BTreeMap::new();
            match &answer[field] {
                Value::Null => {}
                Value::Object(given) => {
                    for (name, value) in given {
                        let value = match value {
                            Value::Null => None,
                            Value::String(text) => Some(text.clone()),
                            _ => return Err(wrong(field, "a map of texts")),
                        };
                        marks.insert(name.clone(), value);
                    }
                }
                _ => return Err(wrong(field, "a map of texts")),
            }
            Ok(marks)
        };
        let again = match &answer["resyncAfterSeconds"] {
            Value::Null => None,
            seconds => {
                let seconds = seconds.as_f64();
                let seconds = seconds.ok_or_else(|| wrong("resyncAfterSeconds", "a number"))?;
                let after = Duration::try_from_secs_f64(seconds.max(0.0));
                after.ok().filter(|after| !after.is_zero())
            }
        };
        let finalized = match &answer["finalized"] {
            Value::Null => false,
            Value::Bool(finalized) => *finalized,
            _ => return Err(wrong("finalized", "true or false")),
        };
        Ok(Self {
            status,
            children,
            labels: marks("labels")?,
            annotations: marks("annotations")?,
            again,
            finalized,
            events: events(&answer["events"]).ok_or_else(|| wrong("events", "a list of events"))?,
        })
    }
}

/// Events: `type` (Normal if it does not say), `reason`, `message`.
fn events(given: &Value) -> Option<Vec<Event>> {
    let mut events = Vec::new();
    let list = match given {
        Value::Null => return Some(events),
        Value::Array(list) => list,
        _ => return None,
    };
    for event in list {
        let (reason, message) = (event["reason"].as_str()?, event["message"].as_str()?);
        events.push(match event["type"].as_str() {
            Some("Warning") => Event::warning(reason, message),
            _ => Event::normal(reason, message),
        });
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_answer_wants_nothing() {
        let answered = Answered::of(&json!({}), "children").unwrap();
        assert_eq!(answered, Answered::default());
        let nulls = json!({"status": null, "children": null, "resyncAfterSeconds": 0});
        assert_eq!(
            Answered::of(&nulls, "children").unwrap(),
            Answered::default()
        );
    }

    #[test]
    fn field_of_another_type_is_named() {
        let error = |answer: Value| Answered::of(&answer, "children").unwrap_err();
        assert!(error(json!({"children": {}})).contains("children is not a list"));
        assert!(error(json!({"children": ["x"]})).contains("children is not a list"));
        assert!(error(json!({"status": []})).contains("status is not an object"));
        assert!(error(json!({"finalized": 1})).contains("finalized is not"));
        assert!(error(json!({"labels": {"a": 1}})).contains("labels is not"));
        assert!(error(json!({"events": [{"reason": "R"}]})).contains("events is not"));
    }

    #[test]
    fn label_that_is_null_is_removed() {
        let answer = json!({"labels": {"a": "1", "b": null}, "resyncAfterSeconds": 1.5});
        let answered = Answered::of(&answer, "attachments").unwrap();
        assert_eq!(answered.labels["a"].as_deref(), Some("1"));
        assert_eq!(answered.labels["b"], None);
        assert_eq!(answered.again, Some(Duration::from_millis(1500)));
    }
}
