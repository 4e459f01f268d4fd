//! [`Defaulter`] and [`Validator`]: the author's code, for webhooks that look things up.
//!
//! A plain function is enough for most ([`Webhook::defaulting`](crate::Webhook::defaulting),
//! [`Webhook::validating`](crate::Webhook::validating)).

use std::future::Future;

use super::{
    review::{Operation, Review},
    verdict::Verdict,
};
use crate::{Kind, Result};

/// Fills in what an object leaves out.
pub trait Defaulter: Send + Sync + 'static {
    /// The kind of the objects.
    type Object: Kind;

    /// Changes the object. `review` tells the rest of the request.
    fn default(
        &self,
        object: &mut Self::Object,
        review: &Review<Self::Object>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// Judges what is about to be stored or deleted.
pub trait Validator: Send + Sync + 'static {
    /// The kind of the objects.
    type Object: Kind;

    /// What is to be said of the request.
    fn validate(
        &self,
        review: &Review<Self::Object>,
    ) -> impl Future<Output = Result<Verdict>> + Send;
}

/// A plain function as a defaulter.
pub(super) struct Fill<K, F>(pub(super) F, pub(super) std::marker::PhantomData<fn() -> K>);

impl<K: Kind, F: Fn(&mut K) + Send + Sync + 'static> Defaulter for Fill<K, F> {
    type Object = K;

    async fn default(&self, object: &mut K, _: &Review<K>) -> Result<()> {
        (self.0)(object);
        Ok(())
    }
}

type Judge<K> = Box<dyn Fn(&K, Option<&K>) -> Verdict + Send + Sync>;
type JudgeDeletion<K> = Box<dyn Fn(&K) -> Verdict + Send + Sync>;

/// Plain functions as a validator.
pub(super) struct Judges<K> {
    pub(super) stored: Option<Judge<K>>,
    pub(super) deleted: Option<JudgeDeletion<K>>,
}

impl<K: Kind> Validator for Judges<K> {
    type Object = K;

    async fn validate(&self, review: &Review<K>) -> Result<Verdict> {
        let (object, old) = (review.object.as_ref(), review.old.as_ref());
        Ok(match (review.operation, object, old) {
            (Operation::Delete, _, Some(old)) => self.deleted.as_ref().map(|judge| judge(old)),
            (_, Some(object), old) => self.stored.as_ref().map(|judge| judge(object, old)),
            _ => None,
        }
        .unwrap_or_default())
    }
}
