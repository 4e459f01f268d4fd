//! One rule of a role: which verbs on which resources or paths.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::auth::Action;

/// A policy rule. An empty list of resource names means every name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) paths: Vec<String>,
}

impl Rule {
    /// Every verb on every resource, and on every path.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        let resources = Self {
            verbs: all(),
            groups: all(),
            resources: all(),
            ..Self::default()
        };
        let paths = Self {
            verbs: all(),
            paths: all(),
            ..Self::default()
        };
        [resources, paths]
    }

    /// The rules of a Role or `ClusterRole`.
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        let rules = role["rules"].as_array().into_iter().flatten();
        rules.map(Self::from_value).collect()
    }

    fn from_value(rule: &Value) -> Self {
        let texts = |field: &str| {
            let texts = rule[field].as_array().into_iter().flatten();
            texts
                .filter_map(|text| text.as_str().map(str::to_owned))
                .collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            paths: texts("nonResourceURLs"),
        }
    }

    /// The rule as its role has it.
    pub(crate) fn to_value(&self) -> Value {
        let mut rule = json!({"verbs": self.verbs});
        for (field, texts) in [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
        ] {
            if !texts.is_empty() {
                rule[field] = json!(texts);
            }
        }
        rule
    }

    /// Whether this rule lets somebody do that.
    pub(crate) fn allows(&self, action: &Action<'_>) -> bool {
        match action {
            Action::Path { verb, path } => {
                has_or_all(&self.verbs, verb) && self.paths.iter().any(|own| covers_path(own, path))
            }
            Action::Resource(asked) => {
                has_or_all(&self.verbs, asked.verb)
                    && has_or_all(&self.groups, asked.group)
                    && self
                        .resources
                        .iter()
                        .any(|own| covers_resource(own, asked.resource, asked.subresource))
                    && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
            }
        }
    }

    /// How many atoms it has.
    pub(super) fn atom_count(&self) -> usize {
        let names = self.names.len().max(1);
        let resources = [self.groups.len(), self.resources.len(), names]
            .into_iter()
            .fold(1, usize::saturating_mul);
        resources
            .saturating_add(self.paths.len())
            .saturating_mul(self.verbs.len())
    }

    /// The same rights as rules of one verb, one resource or path, and at most one name each.
    pub(super) fn atoms(&self) -> Vec<Self> {
        let mut atoms = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let atom = Self {
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        atoms.push(atom);
                        continue;
                    }
                    atoms.extend(self.names.iter().map(|name| Self {
                        names: vec![name.clone()],
                        ..atom.clone()
                    }));
                }
            }
        }
        for path in &self.paths {
            atoms.extend(self.verbs.iter().map(|verb| Self {
                verbs: vec![verb.clone()],
                paths: vec![path.clone()],
                ..Self::default()
            }));
        }
        atoms
    }

    /// Whether whoever has this rule has all of an atom.
    pub(super) fn covers(&self, atom: &Self) -> bool {
        let has_all = |own: &[String], wanted: &[String]| {
            own.iter().any(|text| text == "*") || contains_all(own, wanted)
        };
        let resource_covered = |wanted: &String| {
            let (resource, sub) = wanted.split_once('/').unwrap_or((wanted, ""));
            self.resources
                .iter()
                .any(|own| covers_resource(own, resource, sub))
        };
        let path_covered = |wanted: &String| self.paths.iter().any(|own| covers_path(own, wanted));
        let names_covered = if atom.names.is_empty() {
            self.names.is_empty()
        } else {
            self.names.is_empty() || contains_all(&self.names, &atom.names)
        };
        has_all(&self.verbs, &atom.verbs)
            && has_all(&self.groups, &atom.groups)
            && atom.resources.iter().all(resource_covered)
            && atom.paths.iter().all(path_covered)
            && names_covered
    }

    /// The rule as Kubernetes shows it to people.
    pub(super) fn shown(&self) -> String {
        let mut parts = Vec::new();
        for (what, texts) in [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ] {
            if !texts.is_empty() {
                parts.push(format!("{what}:{}", quoted(texts)));
            }
        }
        format!("{{{}}}", parts.join(", "))
    }
}

/// Whether `own` has all that is wanted. Lists are as long as a client makes them.
fn contains_all(own: &[String], wanted: &[String]) -> bool {
    match wanted {
        [] => true,
        [one] => own.contains(one),
        many => {
            let own: BTreeSet<&String> = own.iter().collect();
            many.iter().all(|text| own.contains(text))
        }
    }
}

/// A list of texts as Go prints it: `["a" "b"]`.
pub(super) fn quoted(texts: &[String]) -> String {
    let mut out = String::from("[");
    for (index, text) in texts.iter().enumerate() {
        let gap = if index == 0 { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = write!(out, "{gap}{text:?}");
    }
    out + "]"
}

fn has_or_all(own: &[String], wanted: &str) -> bool {
    own.iter().any(|text| text == "*" || text == wanted)
}

/// `*` is everything, `pods/log` a subresource, `*/scale` that subresource of anything.
fn covers_resource(own: &str, resource: &str, subresource: &str) -> bool {
    if own == "*" {
        return true;
    }
    match own.split_once('/') {
        None => subresource.is_empty() && own == resource,
        Some((of, sub)) => {
            !subresource.is_empty() && sub == subresource && (of == "*" || of == resource)
        }
    }
}

/// A path covers itself; one that ends in `*`, everything that starts like it.
fn covers_path(own: &str, path: &str) -> bool {
    own == path
        || own
            .strip_suffix('*')
            .is_some_and(|start| path.starts_with(start.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ResourceAction;

    fn rule(value: &Value) -> Rule {
        Rule::from_value(value)
    }

    fn may(rule: &Rule, verb: &str, group: &str, resource: &str, name: &str) -> bool {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        rule.allows(&Action::Resource(ResourceAction {
            verb,
            group,
            resource,
            subresource,
            namespace: "default",
            name,
        }))
    }

    #[test]
    fn verbs_groups_and_resources_all_have_to_match() {
        let reader = rule(
            &json!({"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "deployments"]}),
        );
        assert!(may(&reader, "get", "", "pods", "a") && may(&reader, "list", "apps", "pods", ""));
        assert!(
            !may(&reader, "watch", "", "pods", "") && !may(&reader, "get", "batch", "pods", "")
        );
        assert!(
            !may(&reader, "get", "", "secrets", "a") && !may(&reader, "get", "", "pods/log", "a")
        );
    }

    #[test]
    fn subresources_are_named_apart() {
        let scaler = rule(
            &json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale", "pods/log"]}),
        );
        assert!(may(&scaler, "update", "apps", "deployments/scale", "a"));
        assert!(may(&scaler, "get", "", "pods/log", "a"));
        assert!(
            !may(&scaler, "get", "", "pods", "a") && !may(&scaler, "get", "", "pods/exec", "a")
        );
        let all = rule(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        assert!(may(&all, "create", "", "pods/exec", "a"));
    }

    #[test]
    fn a_rule_with_names_is_about_those_alone() {
        let named = rule(
            &json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]}),
        );
        assert!(may(&named, "get", "", "secrets", "mine"));
        assert!(!may(&named, "get", "", "secrets", "other"));
        // A list of everything names nothing.
        assert!(!may(&named, "list", "", "secrets", ""));
    }

    #[test]
    fn a_path_may_end_in_a_star() {
        let viewer = rule(&json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]}));
        let may = |path| viewer.allows(&Action::Path { verb: "get", path });
        assert!(may("/healthz") && may("/apis/apps"));
        assert!(!may("/healthz/etcd") && !may("/api"));
    }

    #[test]
    fn rights_cover_what_is_not_more_than_they() {
        let own = rule(
            &json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/scale"]}),
        );
        let covered = |wanted: &Value| rule(wanted).atoms().iter().all(|atom| own.covers(atom));
        assert!(covered(
            &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]})
        ));
        assert!(covered(
            &json!({"verbs": ["list"], "apiGroups": [""], "resources": ["things/scale"]})
        ));
        assert!(!covered(
            &json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]})
        ));
        assert!(!covered(
            &json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["pods"]})
        ));
        assert!(!covered(
            &json!({"verbs": ["get"], "nonResourceURLs": ["/"]})
        ));
    }
}
