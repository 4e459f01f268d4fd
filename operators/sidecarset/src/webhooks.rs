//! The webhooks: defaults and judgement of sets, and injection into new pods.
//!
//! A pod that should have its sidecars and could not get them is worse than one that has to wait, so
//! the pods' webhook refuses when this operator cannot be asked: but not pods of the operator itself,
//! which could never be started again, nor those of the cluster's own namespaces.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Namespace, Pod},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use kube::ResourceExt;
use windlass::{
    Declare, Result, Webhook,
    handle::Reads,
    watch::{Scope, Select},
    webhook::{Defaulter, Operation, Review, Validator, Verdict},
};

use crate::injection::{inject, selects};
use crate::kind::SidecarSet;
use crate::{IGNORED, NAME, defaults, validation};

/// Defaults and judgement of sets.
pub(crate) fn of_sets() -> Webhook<SidecarSet> {
    Webhook::of::<SidecarSet>()
        .defaulting(defaults::fill_in)
        .validator([Operation::Create, Operation::Update], Judge::declare)
}

/// Injection into new pods.
pub(crate) fn of_pods() -> Webhook<Pod> {
    Webhook::of::<Pod>()
        .defaulter(Injector::declare)
        .defaulting_on([Operation::Create])
        .in_namespaces(without("kubernetes.io/metadata.name", &IGNORED))
        .for_objects(without("app.kubernetes.io/name", &[NAME]))
}

fn without(label: &str, values: &[&str]) -> LabelSelector {
    LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: label.to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(values.iter().map(ToString::to_string).collect()),
        }]),
        ..LabelSelector::default()
    }
}

struct Judge {
    sets: Reads<SidecarSet>,
}

impl Judge {
    fn declare(declare: &mut Declare<Webhook<SidecarSet>>) -> Self {
        Self {
            sets: declare.reads(&Scope::all()),
        }
    }
}

impl Validator for Judge {
    type Object = SidecarSet;

    async fn validate(&self, review: &Review<SidecarSet>) -> Result<Verdict> {
        let Some(set) = &review.object else {
            return Ok(Verdict::allow());
        };
        let others = self.sets.list(review, Select::own_namespace()).await?;
        Ok(validation::judge(set, &others))
    }
}

struct Injector {
    sets: Reads<SidecarSet>,
    namespaces: Reads<Namespace>,
}

impl Injector {
    fn declare(declare: &mut Declare<Webhook<Pod>>) -> Self {
        Self {
            sets: declare.reads(&Scope::all()),
            namespaces: declare.reads(&Scope::all()),
        }
    }
}

impl Defaulter for Injector {
    type Object = Pod;

    async fn default(&self, pod: &mut Pod, review: &Review<Pod>) -> Result<()> {
        let name = review.namespace.as_deref().unwrap_or_default();
        let namespace = self.namespaces.get(review, name).await?;
        let labels = namespace.map_or_else(BTreeMap::new, |namespace| namespace.labels().clone());
        let mut sets = self.sets.list(review, Select::own_namespace()).await?;
        sets.retain(|set| {
            !set.spec.injection_strategy.paused && selects(set, pod.labels(), name, &labels)
        });
        inject(pod, &sets)
    }
}
