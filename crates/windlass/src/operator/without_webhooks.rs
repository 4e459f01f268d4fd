//! [`Webhooks`] of an operator that is built without the feature `webhooks`: there are none.

use std::iter;

use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_manifests::Description;

use super::{Operator, Signals};
use crate::controller::Shared;

#[derive(Default)]
pub(super) struct Webhooks(());

#[allow(
    clippy::unused_self,
    reason = "the methods of what stands here with the feature"
)]
impl Webhooks {
    pub(super) fn flaws(&self) -> impl Iterator<Item = String> {
        iter::empty()
    }

    pub(super) fn crds(&self, _: &str) -> impl Iterator<Item = (String, CustomResourceDefinition)> {
        iter::empty()
    }

    pub(super) fn remove_those_of(&mut self, _: &[String]) {}

    pub(super) fn describe(&self, _: &mut Description) {}

    pub(super) fn serve(
        &self,
        _: &Operator,
        _: &Shared,
        _: &Signals,
    ) -> Option<BoxFuture<'static, ()>> {
        None
    }
}
