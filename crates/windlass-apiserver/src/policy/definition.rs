//! Policies, read and compiled.

use serde_json::Value;

use crate::cel::admission::{self, ANYTHING, TEXT, TEXT_OR_NULL, TRUTH, Wanted};
use crate::cel::{AdmissionError, Compiled, Definitions, Environment, Type};
use crate::object::meta;
use crate::webhook::{Conditions, Criteria};

/// The kind that parameters are of.
#[derive(Clone, Debug)]
pub(super) struct ParamKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// What must be true, and what is said when it is not.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Compiled,
    pub(super) message: String,
    pub(super) message_expression: Option<Compiled>,
    pub(super) reason: Option<String>,
}

/// A `ValidatingAdmissionPolicy`.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) criteria: Criteria,
    pub(super) ignore_failure: bool,
    pub(super) param_kind: Option<ParamKind>,
    pub(super) conditions: Conditions,
    pub(super) variables: Definitions,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Compiled>,
}

impl Policy {
    pub(super) fn read(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |field: &str| spec[field].as_array().into_iter().flatten();
        let has_params = spec["paramKind"].is_object();
        let mut variables = Variables::default();
        for variable in list("variables") {
            let name = variable["name"].as_str().unwrap_or_default();
            let source = variable["expression"].as_str().unwrap_or_default();
            // What is wrong with it is told when somebody looks at it.
            let _ = variables.define(name, source, has_params);
        }
        let (asking, plain) = expression_environments(has_params);
        let (asking, plain) = (variables.declare(asking), variables.declare(plain));
        let compile = |source: &Value, environment: &Environment, wanted: Wanted| {
            let source = text(source);
            let expression = admission::compile(source.trim(), environment, wanted);
            Compiled { source, expression }
        };
        let validations = list("validations").map(|validation| Validation {
            expression: compile(&validation["expression"], &asking, TRUTH),
            message: text(&validation["message"]).trim().to_owned(),
            message_expression: validation["messageExpression"]
                .as_str()
                .filter(|source| !source.is_empty())
                .map(|_| compile(&validation["messageExpression"], &plain, TEXT)),
            reason: validation["reason"].as_str().map(str::to_owned),
        });
        let annotations = list("auditAnnotations")
            .map(|one| compile(&one["valueExpression"], &asking, TEXT_OR_NULL));
        let (validations, annotations) = (validations.collect(), annotations.collect());
        let conditions = Conditions::read(&spec["matchConditions"], &asking);
        Self {
            name: meta(policy, "name").to_owned(),
            criteria: Criteria::of_policy(&spec["matchConstraints"]),
            ignore_failure: spec["failurePolicy"] == "Ignore",
            param_kind: has_params.then(|| param_kind(&spec["paramKind"])),
            conditions,
            variables: variables.definitions,
            validations,
            annotations,
        }
    }
}

fn param_kind(kind: &Value) -> ParamKind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&kind["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    ParamKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text(&kind["kind"]),
    }
}

/// What expressions of a policy see: those that may ask who may do what, and those that may not.
pub(crate) fn expression_environments(has_params: bool) -> (Environment, Environment) {
    let mut plain = admission::environment();
    if has_params {
        plain = plain.variable("params", Type::Dyn, None);
    }
    (admission::with_authorizer(plain.clone()), plain)
}

/// The variables of a policy, in their order: each sees those before it.
#[derive(Default)]
pub(crate) struct Variables {
    definitions: Definitions,
    types: Vec<(String, Type)>,
}

impl Variables {
    /// Compiles the next one.
    pub(crate) fn define(
        &mut self,
        name: &str,
        source: &str,
        has_params: bool,
    ) -> Result<(), AdmissionError> {
        let environment = self.declare(expression_environments(has_params).0);
        let expression = admission::compile(source, &environment, ANYTHING);
        let ty = match &expression {
            Ok(compiled) => admission::variable_type(&compiled.result),
            Err(_) => Type::Dyn,
        };
        let result = expression.as_ref().map(drop).map_err(Clone::clone);
        self.types.retain(|(known, _)| known != name);
        self.types.push((name.to_owned(), ty));
        let source = source.to_owned();
        self.definitions
            .insert(name.to_owned(), Compiled { source, expression });
        result
    }

    /// An environment in which they can be looked at.
    pub(crate) fn declare(&self, environment: Environment) -> Environment {
        environment.declared("variables", &admission::object(self.types.iter().cloned()))
    }
}
