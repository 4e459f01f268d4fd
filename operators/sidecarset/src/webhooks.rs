//! The webhooks: defaults and validation of sets, and injection into new pods.
//!
//! A pod that should have its sidecars and could not get them is worse than one that has to wait, so
//! the pods' webhook refuses when this operator cannot be asked: but not pods of the operator itself,
//! which could never be started again, nor those of the cluster's own namespaces.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use windlass::watch::{Scope, Select};
use windlass::webhook::{Defaulter, Operation, Review, Validator, Verdict};
use windlass::{Result, Webhook, handle::Reads, object};

use crate::injection::{inject, selects};
use crate::kind::SidecarSet;
use crate::validation::validate;
use crate::{IGNORED, NAME, defaults};

/// Defaults and validation of sets.
pub(crate) fn of_sets() -> Webhook<SidecarSet> {
    Webhook::of::<SidecarSet>()
        .defaulting(defaults::default)
        .validator([Operation::Create, Operation::Update], |declare| {
            SetValidator(declare.reads(&Scope::all()))
        })
}

/// Injection into new pods.
pub(crate) fn of_pods() -> Webhook<Pod> {
    Webhook::of::<Pod>()
        .defaulter(|declare| Injector {
            sets: declare.reads(&Scope::all()),
            namespaces: declare.reads(&Scope::all()),
        })
        .defaulting_on([Operation::Create])
        .in_namespaces(without("kubernetes.io/metadata.name", &IGNORED))
        .for_objects(without("app.kubernetes.io/name", &[NAME]))
}

fn without(label: &str, values: &[&str]) -> LabelSelector {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    object!(LabelSelector { match_expressions: [{ key: label, operator: "NotIn", values: values }] })
}

struct SetValidator(Reads<SidecarSet>);

impl Validator for SetValidator {
    type Object = SidecarSet;

    async fn validate(&self, review: &Review<SidecarSet>) -> Result<Verdict> {
        let others = self.0.list(review, Select::all_namespaces()).await?;
        let verdict = review.object.as_ref().map(|set| validate(set, &others));
        Ok(verdict.unwrap_or_default())
    }
}

struct Injector {
    sets: Reads<SidecarSet>,
    namespaces: Reads<Namespace>,
}

impl Defaulter for Injector {
    type Object = Pod;

    async fn default(&self, pod: &mut Pod, review: &Review<Pod>) -> Result<()> {
        let name = review.namespace.as_deref().unwrap_or_default();
        let namespace = self.namespaces.get(review, name).await?.unwrap_or_default();
        let mut sets = self.sets.list(review, Select::all_namespaces()).await?;
        sets.retain(|set| !set.spec.injection_strategy.paused);
        sets.retain(|set| selects(set, pod.labels(), name, namespace.labels()));
        inject(pod, sets.iter().map(AsRef::as_ref).collect())
    }
}
