//! Nobody gives away more than they have.
//!
//! A role may be written by who has every right in it, or the verb `escalate` on it; a binding by
//! who has every right of the role it refers to, or the verb `bind` on that role.

use std::collections::BTreeMap;

use serde_json::Value;

use super::rule::quoted;
use super::{GROUP, MASTERS, Rule, referred};
use crate::auth::{Action, Identity, ResourceAction};
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};
use crate::steps::step;

/// How many atoms of one rule are looked at one by one.
const MOST_ATOMS: usize = 20_000;

/// Refuses a write of a role or binding that grants what `who` lacks. `old` is what is stored.
pub(crate) fn check(
    server: &ApiServer,
    who: &Identity,
    resource: &Resource,
    namespace: &str,
    new: &Value,
    old: Option<&Value>,
) -> Result<()> {
    let is_rbac = resource.group == GROUP && !resource.is_custom();
    if !is_rbac
        || who.groups.iter().any(|group| group == MASTERS)
        || old.is_some_and(|old| differ_by_what_collectors_write(new, old))
    {
        return Ok(());
    }
    let name = meta(new, "name");
    let forbid = |why: &str| Err(ApiError::forbidden(resource.subject(), name, why));
    let may = |verb, resource, name| {
        let action = Action::Resource(ResourceAction {
            verb,
            group: GROUP,
            resource,
            namespace,
            name,
            ..ResourceAction::default()
        });
        server.rbac().judge(who, &action).is_allowed()
    };
    let exceeds = |rules: &[Rule]| missing(server, who, namespace, rules);
    if resource.strategy.binds_roles() {
        let role = referred(new, namespace);
        let of = if role.namespace().is_empty() {
            "clusterroles"
        } else {
            "roles"
        };
        if may("bind", of, role.name()) {
            return Ok(());
        }
        let Some(rules) = server.rbac().rules_of_role(&role) else {
            // Kubernetes says so of the binding, by the name of the role.
            return Err(ApiError::not_found(resource.subject(), role.name()));
        };
        return exceeds(&rules).map_or(Ok(()), |why| forbid(&why));
    }
    if may("escalate", &resource.plural, name) {
        return Ok(());
    }
    if let Some(why) = exceeds(&Rule::all_of(new)) {
        return forbid(&why);
    }
    let aggregates = |role: &Value| {
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
        selectors.is_some_and(|selectors| !selectors.is_empty())
    };
    if (aggregates(new) || old.is_some_and(aggregates)) && exceeds(&Rule::everything()).is_some() {
        return forbid("must have cluster-admin privileges to use the aggregationRule");
    }
    Ok(())
}

/// What of `rules` the user does not have, as a sentence.
fn missing(server: &ApiServer, who: &Identity, namespace: &str, rules: &[Rule]) -> Option<String> {
    let own = server.rbac().rules_for(who, namespace);
    let mut apart = Vec::new();
    let mut together: BTreeMap<_, Rule> = BTreeMap::new();
    // A rule is a product of its lists: of a few thousand texts it has billions of atoms. Such a
    // rule must be covered by one that the user has, as a whole.
    let (whole, apart_from_it): (Vec<&Rule>, Vec<&Rule>) = rules
        .iter()
        .partition(|rule| rule.atom_count() > MOST_ATOMS);
    let whole = whole.into_iter().cloned();
    for atom in whole.chain(apart_from_it.into_iter().flat_map(Rule::atoms)) {
        step();
        if own.iter().any(|rule| rule.covers(&atom)) {
            continue;
        }
        if atom.paths.is_empty() {
            // What differs by the verb alone is told together.
            let same = (
                atom.groups.clone(),
                atom.resources.clone(),
                atom.names.clone(),
            );
            let verbs = atom.verbs.clone();
            let known = together.entry(same).or_insert_with(|| Rule {
                verbs: Vec::new(),
                ..atom
            });
            known.verbs.extend(verbs);
        } else {
            apart.push(atom);
        }
    }
    let mut lacking: Vec<String> = apart
        .iter()
        .chain(together.values())
        .map(Rule::shown)
        .collect();
    if lacking.is_empty() {
        return None;
    }
    lacking.sort();
    lacking.dedup();
    Some(format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        who.user,
        quoted(&who.groups),
        lacking.join("\n")
    ))
}

/// Whether a change is only about what a garbage collector may change of anything.
fn differ_by_what_collectors_write(new: &Value, old: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            set_meta(&mut object, field, None);
        }
        object
    };
    without(new) == without(old)
}
