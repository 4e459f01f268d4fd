//! From a configuration to the controllers it describes.

use std::{sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{DynamicObject, Selector, SelectorExt};
use serde_json::Value;
use windlass::{
    Controller,
    kind::{Kind, KindInfo},
    watch::Predicate,
};

use super::{
    composite::{self, Composite},
    decorator::{self, Decorator},
    kinds::{CompositeController, DecoratorController, EndpointConfig, Hooks, ResourceRule},
    resolve::Callers,
};
use crate::Declarative;

/// How long one sync may take: several revisions may have to be asked.
const TIMEOUT: Duration = Duration::from_mins(5);

/// What a configuration came to.
pub(super) struct Resolved {
    /// The kinds it names, in the order of [`Configures::rules`].
    pub(super) kinds: Vec<KindInfo>,
    pub(super) callers: Callers,
}

/// A kind whose objects describe controllers.
pub(super) trait Configures: Kind {
    /// What their names begin with, and their finalizers.
    const PREFIX: &'static str;

    /// The kinds it names.
    fn rules(&self) -> Vec<ResourceRule>;

    fn hooks(&self) -> Option<&Hooks>;

    fn endpoints(&self) -> &[EndpointConfig];

    /// What is wrong with it.
    fn check(&self) -> Result<(), String>;

    /// Itself, as hooks are sent it: without what changes although nothing was configured.
    fn value(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        value["apiVersion"] = "metacontroller.k8s.io/v1alpha1".into();
        value["kind"] = Self::kind(&()).into();
        if let Some(fields) = value.as_object_mut() {
            fields.remove("status");
        }
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
        value
    }

    /// The controllers that it describes.
    fn controllers(&self, resolved: Resolved, name: &str) -> Vec<Controller<DynamicObject>>;
}

/// The status alone causes no sync, if that is asked for.
fn only(ignore_status: Option<bool>) -> Option<Predicate<DynamicObject>> {
    (ignore_status == Some(true)).then(|| {
        Predicate::generation_changed()
            .or(Predicate::labels_changed())
            .or(Predicate::annotations_changed())
    })
}

fn selector_of(labels: Option<&LabelSelector>) -> Result<Option<Selector>, String> {
    labels
        .map(|labels| {
            Selector::try_from(labels.clone())
                .map_err(|error| format!("invalid labelSelector: {error}"))
        })
        .transpose()
}

fn resync(seconds: Option<i32>) -> Option<Duration> {
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds.max(1)).ok());
    seconds.map(Duration::from_secs)
}

fn finish(
    mut declarative: Declarative,
    name: &str,
    finalizes: bool,
    children: &[KindInfo],
    resync: Option<Duration>,
    only: Option<Predicate<DynamicObject>>,
) -> Controller<DynamicObject> {
    declarative = declarative.timeout(TIMEOUT);
    if finalizes {
        declarative = declarative.finalizes();
    }
    for kind in children {
        declarative = declarative.child(kind.clone());
    }
    if let Some(every) = resync {
        declarative = declarative.resync(every);
    }
    if let Some(only) = only {
        declarative = declarative.only(only);
    }
    declarative
        .finalizer(format!("metacontroller.io/{name}"))
        .controller()
}

impl Configures for CompositeController {
    const PREFIX: &'static str = "compositecontroller-";

    fn rules(&self) -> Vec<ResourceRule> {
        let parent = std::iter::once(self.spec.parent_resource.rule.clone());
        let children = self.spec.child_resources.iter();
        parent
            .chain(children.map(|child| child.rule.clone()))
            .collect()
    }

    fn hooks(&self) -> Option<&Hooks> {
        self.spec.hooks.as_ref()
    }

    fn endpoints(&self) -> &[EndpointConfig] {
        &self.spec.endpoint_configs
    }

    fn check(&self) -> Result<(), String> {
        selector_of(self.spec.parent_resource.label_selector.as_ref()).map(|_| ())
    }

    fn controllers(&self, resolved: Resolved, name: &str) -> Vec<Controller<DynamicObject>> {
        let Resolved { mut kinds, callers } = resolved;
        if kinds.is_empty() {
            return Vec::new();
        }
        let (spec, parent) = (self.spec.clone(), kinds.remove(0));
        let selector = selector_of(spec.parent_resource.label_selector.as_ref());
        let finalizes = callers.finalize.is_some();
        let settings = Arc::new(composite::Settings {
            controller: self.value(),
            callers,
            parent: parent.clone(),
            children: kinds.clone(),
            spec,
        });
        let spec = &self.spec;
        let mut declarative = Declarative::of(parent, move |declare| {
            Arc::new(Composite::new(&settings, declare))
        })
        .named(name);
        if let Ok(Some(selector)) = selector {
            declarative = declarative.matching(move |parent| {
                let labels = parent.metadata.labels.clone().unwrap_or_default();
                selector.matches(&labels)
            });
        }
        let only = only(spec.parent_resource.ignore_status_changes);
        let resync = resync(spec.resync_period_seconds);
        vec![finish(declarative, name, finalizes, &kinds, resync, only)]
    }
}

impl Configures for DecoratorController {
    const PREFIX: &'static str = "decoratorcontroller-";

    fn rules(&self) -> Vec<ResourceRule> {
        let parents = self.spec.resources.iter().map(|one| one.rule.clone());
        let attachments = self.spec.attachments.iter().map(|one| one.rule.clone());
        parents.chain(attachments).collect()
    }

    fn hooks(&self) -> Option<&Hooks> {
        self.spec.hooks.as_ref()
    }

    fn endpoints(&self) -> &[EndpointConfig] {
        &self.spec.endpoint_configs
    }

    fn check(&self) -> Result<(), String> {
        for resource in &self.spec.resources {
            drop(decorator::selects(resource)?);
        }
        let mut attachments = self.spec.attachments.iter();
        let methods = |one: &super::kinds::ChildResource| {
            let strategy = one.update_strategy.as_ref();
            strategy
                .and_then(|strategy| strategy.method)
                .unwrap_or_default()
        };
        match attachments.find(|one| methods(one).is_rolling()) {
            Some(one) => Err(format!(
                "attachments {} cannot be updated one by one: a decorated object has no revisions",
                one.rule.resource
            )),
            None => Ok(()),
        }
    }

    fn controllers(&self, resolved: Resolved, name: &str) -> Vec<Controller<DynamicObject>> {
        let Resolved { kinds, callers } = resolved;
        let (parents, children) = kinds.split_at(self.spec.resources.len().min(kinds.len()));
        let finalizes = callers.finalize.is_some();
        let settings = Arc::new(decorator::Settings {
            name: self.metadata.name.clone().unwrap_or_default(),
            spec: self.spec.clone(),
            controller: self.value(),
            callers,
            children: children.to_vec(),
        });
        let mut controllers = Vec::new();
        for (kind, resource) in parents.iter().zip(&self.spec.resources) {
            let settings = Arc::clone(&settings);
            let of = if parents.len() == 1 {
                name.to_owned()
            } else {
                format!("{name}-{kind}")
            };
            let mut declarative = Declarative::of(kind.clone(), move |declare| {
                Arc::new(Decorator::new(&settings, declare))
            })
            .named(of);
            if let Ok(selects) = decorator::selects(resource) {
                declarative = declarative.matching(selects);
            }
            let only = only(resource.ignore_status_changes);
            let resync = resync(self.spec.resync_period_seconds);
            controllers.push(finish(declarative, name, finalizes, children, resync, only));
        }
        controllers
    }
}
