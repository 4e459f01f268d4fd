//! [`Webhooks`]: the part of an operator that is asked before objects are stored.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_manifests::{Description, Installation};

use super::{Operator, Signals};
use crate::{
    controller::Shared,
    webhook::{
        AnyVersions, AnyWebhook, Router, Versions, certificate::Lives, keeper, serving::Serving,
    },
};

/// Webhooks, conversions, and what is said about their certificates.
#[derive(Default)]
pub(super) struct Webhooks {
    hooks: Vec<AnyWebhook>,
    versions: Vec<AnyVersions>,
    lives: Lives,
}

/// With the feature `webhooks`.
impl Operator {
    /// Adds a webhook: defaults and judgement for objects of a kind, before they are stored.
    #[must_use]
    pub fn webhook(mut self, webhook: impl Into<AnyWebhook>) -> Self {
        self.webhooks.hooks.push(webhook.into());
        self
    }

    /// The versions of a kind this operator defines, and how one becomes another. The definition
    /// then has them all, and this operator converts between them.
    #[must_use]
    pub fn versions<H>(mut self, versions: Versions<H>) -> Self {
        self.webhooks.versions.push(versions.into());
        self
    }

    /// How long the certificates are valid that the operator issues for its webhooks: the one it
    /// shows (90 days by default), and its CA (two years). Each is renewed when two thirds of
    /// its time are over.
    #[must_use]
    pub fn certificates_valid_for(mut self, serving: Duration, authority: Duration) -> Self {
        self.webhooks.lives = Lives { serving, authority };
        self
    }

    pub(crate) fn conversions(&self) -> &[AnyVersions] {
        &self.webhooks.versions
    }
}

impl Webhooks {
    /// Why definitions of kinds with several versions could not be made.
    pub(super) fn flaws(&self) -> impl Iterator<Item = String> {
        self.versions.iter().flat_map(AnyVersions::flaws).cloned()
    }

    /// The definitions of kinds with several versions, by name.
    pub(super) fn crds(
        &self,
        operator: &str,
    ) -> impl Iterator<Item = (String, CustomResourceDefinition)> {
        let namespace = Installation::namespace_of(operator);
        self.versions
            .iter()
            .filter_map(move |one| Some((one.name(), one.crd(operator, &namespace)?)))
    }

    /// Takes away those of kinds with these definitions.
    pub(super) fn remove_those_of(&mut self, definitions: &[String]) {
        self.hooks.retain(|hook| {
            let mut facts = hook.facts();
            !facts.any(|fact| {
                let plural = fact.resource.split('/').next().unwrap_or_default();
                definitions.contains(&format!("{plural}.{}", fact.group))
            })
        });
        self.versions
            .retain(|one| !definitions.contains(&one.name()));
    }

    /// Adds what they are, and the rights that serving them takes.
    pub(super) fn describe(&self, description: &mut Description) {
        description.webhooks = self.hooks.iter().flat_map(AnyWebhook::facts).collect();
        let converted = self.versions.iter().filter_map(AnyVersions::converted);
        description.conversions = converted.collect();
        if !description.has_webhooks() {
            return;
        }
        let mut serving = keeper::part(description);
        for webhook in &self.hooks {
            let part = webhook.describe();
            serving.watches.extend(part.watches);
            serving.rules.extend(part.rules);
        }
        description.serving = Some(serving);
    }

    /// Subscribes to what serving has to see, and answers what serves them; none if there are none.
    pub(super) fn serve(
        &self,
        operator: &Operator,
        shared: &Shared,
        signals: &Signals,
    ) -> Option<BoxFuture<'static, ()>> {
        let description = operator.description();
        if !description.has_webhooks() {
            return None;
        }
        let (caches, metrics) = (&shared.caches, &shared.metrics);
        let serving = Arc::new(Serving {
            router: Arc::new(Router::new(&self.hooks, &self.versions, caches, metrics)),
            description: Arc::new(description),
            lives: self.lives,
            caches: Arc::clone(caches),
            requests: shared.requests.clone(),
            environment: shared.environment.clone(),
            signals: signals.clone(),
            metrics: metrics.webhooks().clone(),
        });
        let keeper = serving.keeper();
        Some(serving.run(keeper).boxed())
    }
}
