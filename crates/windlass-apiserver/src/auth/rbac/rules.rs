//! The rules of one role, found by what they are about: a large role is judged as fast as a small one.

use std::collections::HashMap;
use std::ops::Deref;

use super::Rule;
use crate::auth::Action;

/// All rules of a role.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    all: Box<[Rule]>,
    /// Which of them name a resource, or a subresource of it.
    of_resource: HashMap<String, Vec<usize>>,
    /// Which are about every resource, or about a subresource of any.
    of_any: Vec<usize>,
    /// Which are about paths.
    of_paths: Vec<usize>,
}

impl Rules {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let mut indexed = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            if !rule.paths.is_empty() {
                indexed.of_paths.push(at);
            }
            for named in &rule.resources {
                let resource = named.split_once('/').map_or(&**named, |(of, _)| of);
                let place = match resource {
                    "*" => &mut indexed.of_any,
                    of => indexed.of_resource.entry(of.to_owned()).or_default(),
                };
                // A rule that names a resource and its subresources is looked at once.
                if place.last() != Some(&at) {
                    place.push(at);
                }
            }
        }
        indexed.all = rules.into();
        indexed
    }

    /// Whether one of them lets somebody do that.
    pub(crate) fn allow(&self, action: &Action<'_>) -> bool {
        let any = |places: &[usize]| places.iter().any(|at| self.all[*at].allows(action));
        match action {
            Action::Path { .. } => any(&self.of_paths),
            Action::Resource(asked) => {
                let named = self.of_resource.get(asked.resource);
                named.is_some_and(|places| any(places)) || any(&self.of_any)
            }
        }
    }
}

impl Deref for Rules {
    type Target = [Rule];

    fn deref(&self) -> &[Rule] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ResourceAction;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    const RESOURCES: &[&str] = &["pods", "pods/log", "*", "*/scale", "deployments", "nodes/*"];
    const VERBS: &[&str] = &["get", "list", "*"];

    fn texts(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
        subsequence(of, 0..=of.len())
            .prop_map(|texts| texts.into_iter().map(str::to_owned).collect())
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let parts = (
            texts(VERBS),
            texts(&["", "apps", "*"]),
            texts(RESOURCES),
            texts(&["a"]),
            texts(&["/metrics", "/api/*", "*"]),
        );
        parts.prop_map(|(verbs, groups, resources, names, paths)| Rule {
            verbs,
            groups,
            resources,
            names,
            paths,
        })
    }

    proptest! {
        #[test]
        fn the_index_judges_as_the_rules_do(
            rules in proptest::collection::vec(rule(), 0..4),
            verb in select(&["get", "delete"][..]),
            group in select(&["", "apps"][..]),
            resource in select(&["pods", "deployments", "nodes", "secrets"][..]),
            subresource in select(&["", "log", "scale"][..]),
            name in select(&["", "a", "b"][..]),
            path in select(&["/metrics", "/api/v1", "/healthz"][..]),
        ) {
            let indexed = Rules::new(rules.clone());
            let asked = ResourceAction { verb, group, resource, subresource, namespace: "", name };
            for action in [Action::Resource(asked), Action::Path { verb, path }] {
                let allowed = rules.iter().any(|rule| rule.allows(&action));
                prop_assert_eq!(indexed.allow(&action), allowed);
            }
        }
    }
}
