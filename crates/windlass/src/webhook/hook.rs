//! [`Webhook`]: what an operator has to say about objects of one kind.

use std::{marker::PhantomData, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{
    any::{self, Answer, Build},
    review::Operation,
    reviewer::{Defaulter, Fill, Judges, Validator},
    verdict::Verdict,
};
use crate::{Declare, Kind};

/// Defaulting and validation for objects of kind `K`, the operator's own or any other.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::{Operator, Webhook, webhook::Verdict};
///
/// fn default(map: &mut ConfigMap) {
///     map.data.get_or_insert_default().entry("mode".into()).or_insert("plain".into());
/// }
///
/// fn validate(map: &ConfigMap, _old: Option<&ConfigMap>) -> Verdict {
///     let mut verdict = Verdict::allow();
///     if map.data.as_ref().is_some_and(|data| data.len() > 10) {
///         verdict.forbid("data", "must have no more than 10 entries");
///     }
///     verdict
/// }
///
/// let operator = Operator::new("modes")
///     .webhook(Webhook::of::<ConfigMap>().defaulting(default).validating(validate));
/// # operator.check().unwrap();
/// ```
pub struct Webhook<K> {
    pub(super) name: Option<String>,
    pub(super) settings: Settings,
    pub(super) defaulter: Option<Build<K, Answer>>,
    pub(super) defaulting_on: Vec<Operation>,
    pub(super) validator: Option<(Build<K, Answer>, Vec<Operation>)>,
    pub(super) judges: Judges<K>,
    kind: PhantomData<fn() -> K>,
}

/// What the API server is told about a webhook.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) subresource: Option<String>,
    pub(super) objects: Option<LabelSelector>,
    pub(super) namespaces: Option<LabelSelector>,
    pub(super) ignore_failures: bool,
    pub(super) validating_on: Option<Vec<Operation>>,
    pub(super) timeout_seconds: i32,
}

impl Webhook<()> {
    /// A webhook for objects of a kind.
    pub fn of<K: Kind>() -> Webhook<K> {
        Webhook {
            name: None,
            settings: Settings {
                subresource: None,
                objects: None,
                namespaces: None,
                ignore_failures: false,
                validating_on: None,
                timeout_seconds: 10,
            },
            defaulter: None,
            defaulting_on: vec![Operation::Create, Operation::Update],
            validator: None,
            judges: Judges {
                stored: None,
                deleted: None,
            },
            kind: PhantomData,
        }
    }
}

impl<K: Kind> Webhook<K> {
    /// A name, for a second webhook of the same kind.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Fills in defaults on every create and update. It may be called again on its own result.
    #[must_use]
    pub fn defaulting(mut self, fill: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let fill = Arc::new(Fill(fill, PhantomData));
        self.defaulter = Some(any::defaulter(move |_| Arc::clone(&fill)));
        self
    }

    /// Judges every object that is about to be created, or updated from the second argument.
    #[must_use]
    pub fn validating(
        mut self,
        judge: impl Fn(&K, Option<&K>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.judges.stored = Some(Box::new(judge));
        self
    }

    /// Judges every object that is about to be deleted.
    #[must_use]
    pub fn validating_deletion(
        mut self,
        judge: impl Fn(&K) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        self.judges.deleted = Some(Box::new(judge));
        self
    }

    /// A defaulter that looks things up: `declare` makes it from its handles.
    #[must_use]
    pub fn defaulter<D: Defaulter<Object = K>>(
        mut self,
        declare: impl Fn(&mut Declare<Webhook<K>>) -> D + Send + Sync + 'static,
    ) -> Self {
        self.defaulter = Some(any::defaulter(move |handles| Arc::new(declare(handles))));
        self
    }

    /// When defaults are filled in: on every create and update unless told. What is only about new
    /// objects should not make every change of an old one wait for this operator.
    #[must_use]
    pub fn defaulting_on(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.defaulting_on = operations.into_iter().collect();
        self
    }

    /// A validator that looks things up, for these operations: `declare` makes it from its handles.
    #[must_use]
    pub fn validator<V: Validator<Object = K>>(
        mut self,
        operations: impl IntoIterator<Item = Operation>,
        declare: impl Fn(&mut Declare<Webhook<K>>) -> V + Send + Sync + 'static,
    ) -> Self {
        let build = any::validator(move |handles| Arc::new(declare(handles)));
        self.validator = Some((build, operations.into_iter().collect()));
        self
    }

    /// Judges on these operations alone, of those it has a function for.
    #[must_use]
    pub fn validating_on(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.settings.validating_on = Some(operations.into_iter().collect());
        self
    }

    /// About a subresource, such as `status`, instead of the object.
    #[must_use]
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.settings.subresource = Some(name.into());
        self
    }

    /// Only for objects with these labels: the others never wait for this operator.
    #[must_use]
    pub fn for_objects(mut self, selector: LabelSelector) -> Self {
        self.settings.objects = Some(selector);
        self
    }

    /// Only for objects in namespaces with these labels.
    #[must_use]
    pub fn in_namespaces(mut self, selector: LabelSelector) -> Self {
        self.settings.namespaces = Some(selector);
        self
    }

    /// Requests go on when this operator cannot be asked; otherwise they are refused.
    #[must_use]
    pub fn ignoring_failures(mut self) -> Self {
        self.settings.ignore_failures = true;
        self
    }

    /// How long the API server waits, from 1 to 30 seconds; 10 by default.
    #[must_use]
    pub fn timeout_seconds(mut self, seconds: u8) -> Self {
        self.settings.timeout_seconds = i32::from(seconds.clamp(1, 30));
        self
    }
}
