//! How many inputs of every built-in kind are recorded, counted.
//!
//! An input is a body that a client makes an object of: a POST to the collection, or a PUT or an
//! apply that made one. Of each kind there must be a minimal one (the accepted one that says the
//! least), a full one (the one that says the most) and three odd ones (any others, accepted or
//! refused). That ours reads each back as the real server does is what the cases themselves test.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::case::{Case, Step};
use crate::normalise::Normal;
use crate::{CASES, compare, folder};

/// Minimal, full, and three odd ones.
const LEAST: usize = 5;

/// Kinds of which there can be fewer, and why.
const FEWER: &[(&str, usize, &str)] = &[(
    "authorization.k8s.io/selfsubjectrulesreviews",
    3,
    "the rules that an accepted one is answered with come in no order",
)];

/// What is known of a kind, as far as it matters here.
#[derive(Deserialize)]
struct Known {
    group: String,
    plural: String,
    verbs: Vec<String>,
}

/// The inputs of one kind.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) accepted: Vec<Value>,
    refused: usize,
    seen: BTreeSet<String>,
}

impl Inputs {
    fn add(&mut self, body: &Value, status: u16) {
        if !self.seen.insert(body.to_string()) {
            return;
        }
        if matches!(status, 200 | 201) {
            self.accepted.push(body.clone());
        } else {
            self.refused += 1;
        }
    }

    /// How much the accepted one says that says the least, and how much that says the most.
    fn says(&self) -> (usize, usize) {
        let said = || self.accepted.iter().map(leaves);
        (
            said().min().unwrap_or_default(),
            said().max().unwrap_or_default(),
        )
    }
}

/// How many values a body says.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(leaves).sum::<usize>().max(1),
        Value::Array(items) => items.iter().map(leaves).sum::<usize>().max(1),
        _ => 1,
    }
}

/// The kind a step makes an object of, as `group/plural`.
fn made(step: &Step, case: &Case, answer: &Normal) -> Option<String> {
    let mut path = step.path.clone();
    for (name, value) in &case.names {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    let mut parts: Vec<&str> = path.split('/').skip(1).collect();
    let group = match parts.first() {
        Some(&"api") if parts.len() > 2 => {
            parts.drain(..2);
            ""
        }
        Some(&"apis") if parts.len() > 3 => {
            let group = parts[1];
            parts.drain(..3);
            group
        }
        _ => return None,
    };
    if parts.len() > 2 && parts[0] == "namespaces" {
        parts.drain(..2);
    }
    let makes = match (step.method.as_str(), parts.as_slice()) {
        ("POST", [_]) => true,
        ("PUT" | "PATCH", [_, _]) => answer.status == 201,
        _ => false,
    };
    makes.then(|| format!("{group}/{}", parts[0]))
}

/// The inputs of all kinds, by `group/plural`.
pub(crate) fn recorded() -> BTreeMap<String, Inputs> {
    let mut inputs: BTreeMap<String, Inputs> = BTreeMap::new();
    for name in CASES {
        let case = Case::read(&folder().join("cases").join(format!("{name}.yaml")));
        let answers = compare::read(&folder().join("answers").join(format!("{name}.json")));
        for step in &case.steps {
            let Some(answer) = answers.iter().find(|answer| answer.step == step.name) else {
                continue;
            };
            if let (Some(body), Some(kind)) = (&step.body, made(step, &case, answer)) {
                inputs.entry(kind).or_default().add(body, answer.status);
            }
        }
    }
    inputs
}

#[test]
fn every_built_in_kind_has_its_recorded_inputs() {
    #[derive(Deserialize)]
    struct Facts {
        resources: Vec<Known>,
    }
    let facts: Facts = serde_json::from_str(include_str!("../../facts/kinds.json"))
        .expect("the table of facts can be read");
    let mut recorded = recorded();
    let mut short = Vec::new();
    println!("accepted  refused  says       kind");
    let mut seen = BTreeSet::new();
    for known in facts.resources {
        let kind = format!("{}/{}", known.group, known.plural);
        if !known.verbs.iter().any(|verb| verb == "create") || !seen.insert(kind.clone()) {
            continue;
        }
        let inputs = recorded.remove(&kind).unwrap_or_default();
        let (least, most) = inputs.says();
        let (accepted, refused) = (inputs.accepted.len(), inputs.refused);
        println!("{accepted:>8}  {refused:>7}  {least:>3}..{most:<4}  {kind}");
        let fewer = FEWER.iter().find(|(name, ..)| *name == kind);
        let wanted = fewer.map_or(LEAST, |(_, wanted, _)| *wanted);
        if accepted + refused < wanted || (fewer.is_none() && (accepted < 2 || most == least)) {
            short.push(format!("{kind}: {accepted} accepted, {refused} refused"));
        }
    }
    println!("{} kinds", seen.len());
    assert!(
        short.is_empty(),
        "kinds without a minimal, a full and three odd inputs:\n{}",
        short.join("\n")
    );
}
