//! [`Raw`]: the client itself, by explicit grant.

use crate::{Context, kind::Object};

/// Access to the client itself, for what no other handle can do. The grants it was declared with
/// are shown by `explain`, and the operator's role holds nothing else.
#[derive(Debug)]
pub struct Raw(());

impl Raw {
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// The client.
    pub fn client<K: Object>(&self, ctx: &Context<K>) -> kube::Client {
        ctx.session.shared.requests.client.clone()
    }
}
