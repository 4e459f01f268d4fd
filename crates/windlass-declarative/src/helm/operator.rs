//! The operator of `watches.yaml`: a controller for each chart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{DynamicObject, Selector};
use windlass::handle::{Access, Verb};
use windlass::kind::KindInfo;
use windlass::watch::Scope;
use windlass::{Controller, Operator};

use super::annotations::FINALIZER;
use super::plan::Overrides;
use super::renderer::Releases;
use super::rights::{plural_of, rights};
use super::store::Records;
use super::watches::{Watch, overrides};
use crate::Declarative;

/// What the flags of the operator say.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How often releases are reconciled although nothing changed; none for never, unless
    /// `watches.yaml` or an annotation says so.
    pub reconcile_period: Option<Duration>,
    /// How many releases of a kind are reconciled at once.
    pub max_concurrent_reconciles: Option<usize>,
    /// Whether events show the override values.
    pub suppress_override_values: bool,
    /// The namespaces that are watched; none for all.
    pub namespaces: Vec<String>,
}

/// How long a release that failed is left alone, if nothing else is said.
const RETRY_AFTER: Duration = Duration::from_mins(1);

/// One kind of an operator: its chart, and the resource it has.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The entry of `watches.yaml`.
    pub watch: Watch,
    /// Its resource.
    pub plural: String,
    /// Its definition, if the operator brings it.
    pub definition: Option<CustomResourceDefinition>,
}

impl Kind {
    /// A kind whose resource is named as usual.
    pub fn of(watch: Watch) -> Self {
        Self {
            plural: plural_of(&watch.kind),
            watch,
            definition: None,
        }
    }
}

/// Why a chart cannot have an operator.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The chart cannot be read.
    #[error("cannot use chart {chart}: {reason}")]
    Chart {
        /// The chart.
        chart: String,
        /// Why not.
        reason: String,
    },
    /// The selector cannot be used.
    #[error("invalid selector of {kind}: {reason}")]
    Selector {
        /// The kind.
        kind: String,
        /// Why.
        reason: String,
    },
}

/// An operator with a controller for each kind.
pub fn operator(
    name: &str,
    kinds: &[Kind],
    settings: &Settings,
) -> Result<Operator, OperatorError> {
    let mut operator = Operator::new(name);
    for kind in kinds {
        operator = operator.controller(controller(kind, settings)?);
    }
    Ok(operator)
}

/// The controller of a kind.
pub fn controller(
    kind: &Kind,
    settings: &Settings,
) -> Result<Controller<DynamicObject>, OperatorError> {
    let watch = Arc::new(kind.watch.clone());
    let parent = KindInfo {
        group: watch.group.clone(),
        version: watch.version.clone(),
        kind: watch.kind.clone(),
        plural: kind.plural.clone(),
        namespaced: true,
    };
    let wrong = |reason: String| OperatorError::Chart {
        chart: watch.chart.name().to_owned(),
        reason,
    };
    let found = rights(&watch.chart).map_err(|error| wrong(error.to_string()))?;
    let access: Vec<Access> = found
        .rights
        .iter()
        .map(|right| {
            let verbs = right.verbs.iter().filter_map(|verb| verb_of(verb));
            Access::resource(right.group.as_str(), right.resource.as_str(), verbs)
        })
        .collect();
    // What a chart looks up is only read.
    let lookups: Vec<Access> = found
        .rights
        .iter()
        .map(|right| {
            let verbs = [Verb::Get, Verb::List, Verb::Watch];
            Access::resource(right.group.as_str(), right.resource.as_str(), verbs)
        })
        .collect();
    let values = overrides(&watch.override_values).map_err(wrong)?;
    let shown = |(path, value): (&String, &String)| {
        let value = if settings.suppress_override_values {
            "****"
        } else {
            value.as_str()
        };
        (path.clone(), value.to_owned())
    };
    let overrides = Overrides {
        values,
        shown: watch.override_values.iter().map(shown).collect(),
    };
    let period = watch.reconcile_period.or(settings.reconcile_period);
    let plans: Arc<Mutex<BTreeMap<_, _>>> = Arc::default();
    let (renders, records) = (Arc::clone(&plans), plans);
    let chart = Arc::clone(&watch);
    let retry_after = period.unwrap_or(RETRY_AFTER);
    let own_kind = parent.clone();
    let mut declarative = Declarative::of(parent, move |declare| {
        Arc::new(Releases::declare(
            declare,
            Arc::clone(&chart),
            overrides.clone(),
            retry_after,
            &lookups,
            Arc::clone(&renders),
        ))
    })
    .named(format!("{}-controller", watch.kind.to_lowercase()))
    .any_kind(access)
    .inventory(move |declare| Arc::new(Records::declare(declare, &own_kind, Arc::clone(&records))))
    .finalizer(FINALIZER)
    .scoped(scope(&watch, settings)?);
    if let Some(definition) = &kind.definition {
        declarative = declarative.defined_by(definition.clone());
    }
    if let Some(period) = period {
        declarative = declarative.resync(period);
    }
    if let Some(limit) = settings.max_concurrent_reconciles {
        declarative = declarative.concurrency(limit);
    }
    Ok(declarative.controller())
}

fn scope(watch: &Watch, settings: &Settings) -> Result<Scope, OperatorError> {
    let mut scope = Scope::all();
    for namespace in &settings.namespaces {
        scope = scope.namespace(namespace);
    }
    let is_empty =
        watch.selector.match_labels.is_none() && watch.selector.match_expressions.is_none();
    if is_empty {
        return Ok(scope);
    }
    let selector =
        Selector::try_from(watch.selector.clone()).map_err(|error| OperatorError::Selector {
            kind: watch.kind.clone(),
            reason: error.to_string(),
        })?;
    Ok(scope.labels(&selector))
}

fn verb_of(verb: &str) -> Option<Verb> {
    Some(match verb {
        "get" => Verb::Get,
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "create" => Verb::Create,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        _ => return None,
    })
}
