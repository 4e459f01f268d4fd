//! Conditions: what the framework derives about every object of a kind that has them.
//!
//! | condition | True when |
//! | --- | --- |
//! | Available | the reconcile worked and everything the object owns is ready |
//! | Progressing | something it owns is not there yet |
//! | Degraded | the reconcile waits for something, or fails; its reason says why |
//!
//! The author adds domain conditions, in the status's own list. Who knows better than the owned
//! objects do (whether a database answers, say) gives some of these three as well, and they stay as
//! given; only a reconcile that fails is Degraded whatever was said. A transition time changes only
//! on a transition.

mod readiness;

use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::readiness::{Readiness, readiness};
use crate::{
    Error, Result,
    controller::{Action, Step},
    error::Class,
};

/// A condition: (type, holds, reason, message).
pub(crate) type One = (&'static str, bool, String, String);

/// The three derived conditions.
pub(crate) type Derived = [One; 3];

/// Derives the conditions from how a reconcile ended and what the owned objects look like.
pub(crate) fn derive(result: Result<&Action, &Error>, owned: &[Readiness]) -> Derived {
    let unready: Vec<&str> = owned.iter().filter_map(Readiness::why_not).collect();
    let (degraded, reason, message) = match result {
        Ok(Action {
            step: Step::Waiting { reason, message },
            ..
        }) => (true, reason.clone(), message.clone()),
        Ok(_) => (false, "AsExpected".to_owned(), String::new()),
        Err(error) => (true, reason_of(error).to_owned(), error.to_string()),
    };
    let ready = unready.is_empty();
    let why = unready.join("; ");
    let available = match (degraded, ready) {
        (false, true) => (true, "Ready".to_owned(), String::new()),
        (false, false) => (false, "NotReady".to_owned(), why.clone()),
        (true, _) => (false, reason.clone(), message.clone()),
    };
    let progressing = match (degraded, ready) {
        (_, false) => (true, "NotReady".to_owned(), why),
        (false, true) => (false, "Settled".to_owned(), String::new()),
        (true, true) => (false, reason.clone(), message.clone()),
    };
    [
        ("Available", available.0, available.1, available.2),
        ("Progressing", progressing.0, progressing.1, progressing.2),
        ("Degraded", degraded, reason, message),
    ]
}

/// Whether a status says that its object is degraded.
pub(crate) fn is_degraded(status: &Value) -> bool {
    as_before(status)[2].1
}

/// Whether a status says that a reconcile has failed, and not the author that something is wrong.
pub(crate) fn has_failed(status: &Value) -> bool {
    let [_, _, (_, degraded, reason, _)] = as_before(status);
    degraded && FAILURES.contains(&reason.as_str())
}

/// The derived conditions as a status has them.
pub(crate) fn as_before(status: &Value) -> Derived {
    ["Available", "Progressing", "Degraded"].map(|kind| {
        let conditions = status.get("conditions").and_then(Value::as_array);
        let known = conditions
            .into_iter()
            .flatten()
            .find(|one| one["type"] == kind);
        let text = |field: &str| {
            let text = known.and_then(|known| known[field].as_str());
            text.unwrap_or_default().to_owned()
        };
        (
            kind,
            text("status") == "True",
            text("reason"),
            text("message"),
        )
    })
}

/// Every reason that a failed reconcile has.
const FAILURES: [&str; 7] = [
    "NotOurs",
    "ReconcileTimeout",
    "ReconcilePanic",
    "Forbidden",
    "ReconcileRefused",
    "Conflict",
    "ReconcileError",
];

fn reason_of(error: &Error) -> &'static str {
    match error {
        Error::NotOurs { .. } => "NotOurs",
        Error::Timeout { .. } => "ReconcileTimeout",
        Error::Panic { .. } => "ReconcilePanic",
        _ if error.is_forbidden() => "Forbidden",
        _ => match error.class() {
            Class::Terminal => "ReconcileRefused",
            Class::Conflict => "Conflict",
            Class::Waiting => "Waiting",
            Class::Retry => "ReconcileError",
        },
    }
}

/// The derived conditions without those that a status has already: how the reconcile ended has the
/// last word only when it failed.
pub(crate) fn beside(given: &Value, derived: Derived, failed: bool) -> Vec<One> {
    let conditions = given.get("conditions").and_then(Value::as_array);
    let given = |kind: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|one| one["type"] == kind)
    };
    let stays = |one: &One| !given(one.0) || (failed && one.0 == "Degraded");
    derived.into_iter().filter(stays).collect()
}

/// Puts the derived conditions beside those the author gave, keeping the transition times of
/// conditions that were in the same state before.
pub(crate) fn merge(
    status: &mut Value,
    before: &Value,
    derived: impl IntoIterator<Item = One>,
    generation: i64,
    now: Timestamp,
) {
    let Some(status) = status.as_object_mut() else {
        return;
    };
    let mut conditions = match status.remove("conditions") {
        Some(Value::Array(given)) => given,
        _ => Vec::new(),
    };
    for (kind, holds, reason, message) in derived {
        conditions.retain(|condition| condition["type"] != kind);
        conditions.push(json!({
            "type": kind,
            "status": if holds { "True" } else { "False" },
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
        }));
    }
    // Kubernetes keeps these times to the second.
    let now = Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string();
    for condition in &mut conditions {
        let known = before
            .get("conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .find(|old| old["type"] == condition["type"] && old["status"] == condition["status"]);
        condition["lastTransitionTime"] = known.map_or_else(
            || now.clone().into(),
            |old| old["lastTransitionTime"].clone(),
        );
    }
    status.insert("conditions".to_owned(), Value::Array(conditions));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stays_until_a_reconcile_ends_well_whatever_the_author_says_meanwhile() {
        let degraded = |holds: &str, reason: &str| {
            json!({"conditions": [
                {"type": "Degraded", "status": holds, "reason": reason, "message": "m"},
            ]})
        };
        let given = degraded("False", "AsExpected");
        let kept = |before: &Value| {
            let beside = beside(&given, as_before(before), has_failed(before));
            beside.iter().any(|one| one.0 == "Degraded")
        };
        let error = Error::other("no");
        let failed = degraded("True", reason_of(&error));
        assert!(kept(&failed));
        // What the author said is the author's to take back.
        assert!(!kept(&degraded("True", "QuorumLost")));
        assert!(!kept(&degraded("False", "Forbidden")));
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
        status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["type"] == kind)
            .unwrap()
    }

    #[test]
    fn a_transition_time_moves_only_on_a_transition() {
        let settled = Action::done();
        let mut first = json!({});
        merge(
            &mut first,
            &Value::Null,
            derive(Ok(&settled), &[]),
            1,
            at(10),
        );
        let mut second = json!({});
        merge(&mut second, &first, derive(Ok(&settled), &[]), 1, at(20));
        assert_eq!(first, second);
        let mut third = json!({});
        merge(
            &mut third,
            &second,
            derive(Ok(&Action::waiting("Why", "because")), &[]),
            1,
            at(30),
        );
        assert_eq!(
            condition(&third, "Degraded")["lastTransitionTime"],
            "1970-01-01T00:00:30Z"
        );
        assert_eq!(condition(&third, "Degraded")["reason"], "Why");
        assert_eq!(
            condition(&third, "Progressing")["lastTransitionTime"],
            "1970-01-01T00:00:10Z"
        );
    }

    #[test]
    fn unready_dependents_are_progress_not_degradation() {
        let unready = [Readiness::NotYet("deployment a has 1 of 3".into())];
        let [available, progressing, degraded] = derive(Ok(&Action::done()), &unready);
        assert!(!available.1 && progressing.1 && !degraded.1);
        assert_eq!(progressing.3, "deployment a has 1 of 3");
    }

    #[test]
    fn what_the_author_knows_better_stays_unless_the_reconcile_failed() {
        let given = json!({"conditions": [
            {"type": "Available", "status": "True", "reason": "Serving", "message": ""},
            {"type": "Degraded", "status": "False", "reason": "Healthy", "message": ""},
        ]});
        let kinds = |result, failed| -> Vec<&str> {
            let left = beside(&given, derive(result, &[]), failed);
            left.into_iter().map(|one| one.0).collect()
        };
        let settled = Action::done();
        assert_eq!(kinds(Ok(&settled), false), ["Progressing"]);
        let error = Error::terminal("no");
        assert_eq!(kinds(Err(&error), true), ["Progressing", "Degraded"]);
    }

    #[test]
    fn the_authors_conditions_stay() {
        let mut status = json!({"conditions": [{"type": "Sharded", "status": "True", "reason": "R", "message": ""}]});
        merge(
            &mut status,
            &Value::Null,
            derive(Ok(&Action::done()), &[]),
            1,
            at(5),
        );
        assert_eq!(
            condition(&status, "Sharded")["lastTransitionTime"],
            "1970-01-01T00:00:05Z"
        );
        assert_eq!(status["conditions"].as_array().unwrap().len(), 4);
    }
}
