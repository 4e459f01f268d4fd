//! What a webhook declares: the kinds it reads.

use super::Webhook;
use crate::{
    Declare, Kind,
    declare::Grant,
    handle::{Reads, Verb},
    kind::KindInfo,
    watch::Scope,
};

/// What a webhook of objects of kind `K` needs: it reads, and does nothing else.
impl<K: Kind> Declare<Webhook<K>> {
    /// The webhook reads objects of kind `T` within this scope, from the cache that the
    /// operator's controllers use too. A cache is behind the API server, by milliseconds as a
    /// rule: two requests at once may both be admitted that together should not be.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// # use windlass::{Declare, Webhook, handle::{Reads}, watch::{Scope}};
    /// struct Quota { namespaces: Reads<Namespace> }
    ///
    /// impl Quota {
    ///     fn declare(declare: &mut Declare<Webhook<ConfigMap>>) -> Self {
    ///         Self { namespaces: declare.reads(&Scope::all()) }
    ///     }
    /// }
    /// ```
    pub fn reads<T: Kind>(&mut self, scope: &Scope) -> Reads<T> {
        let kind = KindInfo::of::<T>();
        self.grant(Grant::of::<T>(Verb::READ), "looks them up");
        Reads::cached(self.watch(&kind, scope, "looked up by a webhook"))
    }
}
