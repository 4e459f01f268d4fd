//! The objects that a token may go with.

use crate::server::ApiServer;
use crate::store::{Key, Stored, TableName};
use std::sync::Arc;

/// What sort of object: all are of the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Account,
    Pod,
    Secret,
    Node,
}

impl Bound {
    /// What a reference asks a token to be bound to.
    pub(super) fn named(api_version: &str, kind: &str) -> Option<Self> {
        match (api_version, kind) {
            ("v1", "Pod") => Some(Self::Pod),
            ("v1", "Secret") => Some(Self::Secret),
            ("v1", "Node") => Some(Self::Node),
            _ => None,
        }
    }

    /// The name of the resource.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Account => "serviceaccounts",
            Self::Pod => "pods",
            Self::Secret => "secrets",
            Self::Node => "nodes",
        }
    }

    /// The object of this name; nodes are in no namespace.
    pub(super) fn find(
        self,
        server: &ApiServer,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Stored>> {
        let namespace = if self == Self::Node { "" } else { namespace };
        let table = TableName::new("", self.plural());
        server.store().get(&table, &Key::new(namespace, name))
    }
}
