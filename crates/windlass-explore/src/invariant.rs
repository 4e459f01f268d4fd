//! What a user says must hold, in CEL: each resource is a variable, a list of its objects.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_cel::{CelValue, CompileError, Environment, Expression, Failure, Type, of_json};

/// What evaluating one may cost.
const LIMIT: u64 = 10_000_000;
/// Built-in resources that expressions may use.
const BUILT_IN: &[&str] = &[
    "configmaps",
    "cronjobs",
    "daemonsets",
    "deployments",
    "endpoints",
    "endpointslices",
    "events",
    "ingresses",
    "jobs",
    "leases",
    "namespaces",
    "networkpolicies",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets",
    "pods",
    "replicasets",
    "rolebindings",
    "roles",
    "secrets",
    "serviceaccounts",
    "services",
    "statefulsets",
];

/// An expression that must be true.
#[derive(Clone, Debug)]
pub(crate) struct Invariant {
    pub(crate) name: String,
    expression: Expression,
    variables: Vec<String>,
}

impl Invariant {
    /// Compiles an expression about built-in resources and those of these plurals.
    pub(crate) fn compile(name: &str, source: &str, plurals: &[String]) -> Result<Self, String> {
        let known = BUILT_IN.iter().map(ToString::to_string);
        let mut variables: Vec<String> = known.chain(plurals.iter().cloned()).collect();
        variables.sort();
        variables.dedup();
        let environment = variables
            .iter()
            .fold(Environment::default(), |environment, plural| {
                environment.variable(plural, Type::Dyn, None)
            });
        let expression = Expression::compile(source, &environment)
            .map_err(|why| format!("cannot compile {name:?}: {why}"))?;
        variables.retain(|variable| expression.uses(variable));
        Ok(Self {
            name: name.to_owned(),
            expression,
            variables,
        })
    }

    /// Why it does not hold for these objects, given by resource.
    pub(crate) fn broken(&self, objects: &[(String, Value)]) -> Option<String> {
        let mut lists: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for variable in &self.variables {
            lists.insert(variable, Vec::new());
        }
        for (resource, object) in objects {
            let plural = resource.split('.').next().unwrap_or_default();
            if let Some(list) = lists.get_mut(plural) {
                list.push(object.clone());
            }
        }
        let values: Vec<(&str, CelValue)> = lists
            .into_iter()
            .map(|(name, list)| (name, of_json(&Value::Array(list), None)))
            .collect();
        match self.expression.evaluate(&values, LIMIT).0 {
            Ok(CelValue::Bool(true)) => None,
            Ok(_) => Some("it is false".to_owned()),
            Err(Failure::TooCostly) => Some("it costs too much to evaluate".to_owned()),
            Err(other) => Some(format!("it cannot be evaluated: {other:?}")),
        }
    }
}

/// Whether an expression about one object, `self`, is true.
pub(crate) fn holds_for(source: &str, object: &Value) -> Result<bool, CompileError> {
    let environment = Environment::default().variable("self", Type::Dyn, None);
    let expression = Expression::compile(source, &environment)?;
    let value = of_json(object, None);
    // A field that is not there yet is no error: it is waited for.
    Ok(expression.evaluate(&[("self", value)], LIMIT).0 == Ok(CelValue::Bool(true)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invariant_counts_the_objects_of_a_resource() {
        let rule = Invariant::compile(
            "two",
            "webs.size() == 2 || pods.size() == 0",
            &["webs".to_owned()],
        );
        let rule = rule.unwrap();
        let web = ("webs.example.com".to_owned(), json!({}));
        let pod = ("pods".to_owned(), json!({}));
        assert_eq!(rule.broken(&[web.clone(), web.clone(), pod.clone()]), None);
        assert_eq!(
            rule.broken(&[web.clone(), pod]),
            Some("it is false".to_owned())
        );
        assert_eq!(rule.broken(&[web]), None);
    }

    #[test]
    fn invariant_about_an_unknown_resource_is_refused() {
        let refused = Invariant::compile("odd", "podz.size() == 0", &[]).unwrap_err();
        assert!(refused.starts_with("cannot compile \"odd\""), "{refused}");
    }

    #[test]
    fn field_that_is_missing_does_not_hold() {
        let object = json!({"spec": {"n": 1}});
        assert_eq!(holds_for("self.spec.n == 1", &object), Ok(true));
        assert_eq!(holds_for("self.status.n == 1", &object), Ok(false));
        assert!(holds_for("self.", &object).is_err());
    }
}
