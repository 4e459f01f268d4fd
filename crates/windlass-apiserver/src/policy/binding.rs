//! Bindings: which policies are in force, for what, with which parameters.

use serde_json::Value;

use crate::object::meta;
use crate::verbs::selector::Selector;
use crate::webhook::Criteria;

/// What follows from a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Deny,
    Warn,
    Audit,
}

/// Which objects are parameters.
#[derive(Debug)]
pub(super) struct ParamRef {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) selector: Option<Selector>,
    /// Whether it is a refusal when there are none.
    pub(super) required: bool,
}

/// A `ValidatingAdmissionPolicyBinding`.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    pub(super) criteria: Criteria,
    pub(super) params: Option<ParamRef>,
    pub(super) actions: Vec<Action>,
}

impl Binding {
    pub(super) fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let reference = &spec["paramRef"];
        let params = reference.is_object().then(|| ParamRef {
            name: text(&reference["name"]),
            namespace: text(&reference["namespace"]),
            selector: reference["selector"]
                .is_object()
                .then(|| Selector::from_object(&reference["selector"])),
            required: reference["parameterNotFoundAction"] == "Deny",
        });
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        Self {
            name: meta(binding, "name").to_owned(),
            policy: text(&spec["policyName"]),
            criteria: Criteria::of_policy(&spec["matchResources"]),
            params,
            actions: actions
                .filter_map(|action| match action.as_str()? {
                    "Deny" => Some(Action::Deny),
                    "Warn" => Some(Action::Warn),
                    "Audit" => Some(Action::Audit),
                    _ => None,
                })
                .collect(),
        }
    }
}
