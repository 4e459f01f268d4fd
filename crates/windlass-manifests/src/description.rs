//! [`Description`]: an operator as plain facts.

use std::collections::BTreeSet;

use crate::Webhook;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;

use crate::structural;

/// Everything about an operator that manifests are made from.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The operator's name: a DNS label, such as `memcached-operator`.
    pub name: String,
    /// The operator's version.
    pub version: String,
    /// The kinds it defines.
    pub crds: Vec<CustomResourceDefinition>,
    /// Its controllers.
    pub controllers: Vec<Part>,
    /// Its background tasks.
    pub tasks: Vec<Part>,
    /// Its admission webhooks.
    pub webhooks: Vec<Webhook>,
    /// The definitions whose versions it converts, by name.
    pub conversions: Vec<String>,
    /// What serving webhooks takes.
    pub serving: Option<Part>,
    /// Objects of its kinds to try it with.
    pub samples: Vec<serde_json::Value>,
    /// Why definitions are missing that should be here.
    pub flaws: Vec<String>,
}

impl Description {
    /// Why the API server would refuse its kinds; nothing if it would not.
    pub fn flaws(&self) -> Vec<String> {
        let of_schemas = self.crds.iter().flat_map(structural::flaws);
        let of_schemas = of_schemas.map(|flaw| flaw.to_string());
        self.flaws.iter().cloned().chain(of_schemas).collect()
    }

    /// All rules of all parts.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.controllers
            .iter()
            .chain(&self.tasks)
            .chain(&self.serving)
            .flat_map(|part| &part.rules)
    }
}

/// A controller or a background task.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What it is, in a few words: `reconciles memcacheds.cache.example.com`.
    pub purpose: String,
    /// What it watches and why.
    pub watches: Vec<Watched>,
    /// What it may do and why.
    pub rules: Vec<Rule>,
}

/// A kind that a controller watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Watched {
    /// The resource with its group, as `deployments.apps`.
    pub resource: String,
    /// The restriction, if there is one, as `field spec.nodeName=a`.
    pub scope: Option<String>,
    /// What its changes do.
    pub why: String,
}

/// Verbs on a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// API group; empty for the core group, `*` for all.
    pub group: String,
    /// Plural name, with a subresource after a slash; `*` for all.
    pub resource: String,
    /// Only objects of these names; none for all.
    pub names: BTreeSet<String>,
    /// The verbs.
    pub verbs: BTreeSet<String>,
    /// What needs them.
    pub why: String,
}
