//! What an operator watches and may do, and why, for people.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{Description, Part, Rule};

/// A page that says what the operator is.
pub fn explain(description: &Description) -> String {
    let mut page = format!("{} {}\n", description.name, description.version);
    for crd in &description.crds {
        let versions: Vec<&str> = crd
            .spec
            .versions
            .iter()
            .map(|version| version.name.as_str())
            .collect();
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        line(
            &mut page,
            0,
            &format!("defines {name} ({})", versions.join(", ")),
        );
    }
    for controller in &description.controllers {
        part(&mut page, "controller", controller);
    }
    for task in &description.tasks {
        part(&mut page, "task", task);
    }
    if let Some(serving) = &description.serving {
        part(&mut page, "webhooks", serving);
    }
    page
}

/// The same as facts, for programs.
pub fn facts(description: &Description) -> Value {
    let kinds = description.crds.iter().map(|crd| {
        let versions = crd.spec.versions.iter().map(|version| &version.name);
        json!({"name": crd.metadata.name, "versions": versions.collect::<Vec<_>>()})
    });
    json!({
        "name": description.name,
        "version": description.version,
        "defines": kinds.collect::<Vec<_>>(),
        "controllers": description.controllers,
        "tasks": description.tasks,
        "webhooks": description.serving,
    })
}

fn part(page: &mut String, what: &str, part: &Part) {
    page.push('\n');
    line(page, 0, &format!("{what} {}: {}", part.name, part.purpose));
    if !part.watches.is_empty() {
        line(page, 1, "watches");
    }
    for watched in &part.watches {
        let scope = watched
            .scope
            .as_ref()
            .map(|scope| format!(" ({scope})"))
            .unwrap_or_default();
        line(
            page,
            2,
            &format!("{}{scope}: {}", watched.resource, watched.why),
        );
    }
    line(page, 1, "may");
    for rule in &part.rules {
        let verbs: Vec<&str> = rule.verbs.iter().map(String::as_str).collect();
        let group = if rule.group.is_empty() {
            String::new()
        } else {
            format!(".{}", rule.group)
        };
        let (resource, sub) = match rule.resource.split_once('/') {
            Some((resource, sub)) => (resource, format!("/{sub}")),
            None => (rule.resource.as_str(), String::new()),
        };
        line(
            page,
            2,
            &format!(
                "{} {resource}{group}{sub}{}: {}",
                verbs.join(", "),
                names(rule),
                rule.why
            ),
        );
    }
}

fn names(rule: &Rule) -> String {
    let names: Vec<&str> = rule.names.iter().map(String::as_str).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" ({})", names.join(", "))
    }
}

fn line(page: &mut String, depth: usize, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "{:indent$}{text}", "", indent = depth * 2);
}
