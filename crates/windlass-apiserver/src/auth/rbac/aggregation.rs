//! Aggregated roles: a `ClusterRole` whose rules are those of the roles its selectors find.
//!
//! In Kubernetes a controller does this; here the write that changes a role does, so that it is
//! done when the write is answered. An aggregated role may be gathered by another (`view` by
//! `edit` by `admin`): rounds are run until nothing changes.

use serde_json::{Value, json};

use super::{GROUP, Policy, Rule};
use crate::apply::{self, Managers, Writer};
use crate::object::{meta, set_meta};
use crate::server::ApiServer;
use crate::store::{Key, Stored, TableName};
use crate::verbs::selector::Selector;

/// Roles may gather each other in a circle and never come to rest: a run ends after this many rounds.
const ROUNDS: usize = 16;

/// The rules that a role gathers.
fn gathered(policy: &Policy, name: &str, selectors: &[Selector]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for selector in selectors {
        let others = policy
            .labels
            .iter()
            .filter(|(other, labels)| *other != name && selector.matches_labels(*labels));
        for (other, _) in others {
            let found = policy.roles.get(&Key::new("", other));
            for rule in found.into_iter().flat_map(|rules| rules.iter()) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

/// What has to change now: roles and the rules they should have.
fn due(policy: &Policy) -> Vec<(Key, Vec<Rule>)> {
    let mut due = Vec::new();
    for (name, selectors) in &policy.aggregations {
        let key = Key::new("", name);
        let rules = gathered(policy, name, selectors);
        if policy.roles.get(&key).is_none_or(|has| ***has != *rules) {
            due.push((key, rules));
        }
    }
    due
}

/// These roles and bindings with the rules of aggregated roles filled in.
pub(crate) fn aggregated(mut objects: Vec<Value>) -> Vec<Value> {
    let is_role = |object: &Value| object["kind"] == "ClusterRole";
    for _ in 0..ROUNDS {
        for (key, rules) in due(&Policy::of(&objects)) {
            let role = objects
                .iter_mut()
                .find(|object| is_role(object) && meta(object, "name") == key.name());
            if let Some(role) = role {
                role["rules"] = values(&rules);
            }
        }
    }
    objects
}

fn values(rules: &[Rule]) -> Value {
    rules.iter().map(Rule::to_value).collect()
}

/// Brings every aggregated role up to date.
pub(super) fn run(server: &ApiServer) {
    let table = TableName::new(GROUP, "clusterroles");
    for _ in 0..ROUNDS {
        let due = due(&server.rbac().read());
        if due.is_empty() {
            return;
        }
        for (key, rules) in due {
            if let Some(role) = server.store().get(&table, &key) {
                set_rules(server, &role, &rules);
            }
        }
    }
}

/// Stores the rules, as the controller that does this in Kubernetes would.
fn set_rules(server: &ApiServer, role: &Stored, rules: &[Rule]) {
    let old = role.value();
    let mut new = old.clone();
    new["rules"] = values(rules);
    if let Some(resource) = server.registry().find(GROUP, "v1", "clusterroles") {
        let now = server.clock().now_seconds();
        let writer = Writer {
            manager: "clusterrole-aggregation-controller",
            api_version: "rbac.authorization.k8s.io/v1",
            subresource: "",
            now: Some(&now),
        };
        let config = json!({"rules": new["rules"]});
        let managers = Managers::read(&old["metadata"]["managedFields"]);
        let mut live = old;
        set_meta(&mut live, "managedFields", None);
        if let Ok(applied) = apply::apply(&live, &config, &resource.ty, managers, &writer, true) {
            set_meta(&mut new, "managedFields", Some(applied.managers.write()));
        }
    }
    let table = TableName::new(GROUP, "clusterroles");
    // Who changed the role meanwhile runs the aggregation too.
    let stored = server
        .store()
        .update(&table, role.key.clone(), role.revision, new, &[]);
    if stored.is_ok() {
        server
            .rbac()
            .refresh_role(server.store(), &table, &role.key);
    }
}
