//! What a request is about, as admission sees it.

use std::sync::Arc;

use serde_json::Value;

use crate::auth::Identity;
use crate::http::warnings::Warnings;
use crate::registry::resource::Resource;
use crate::server::ApiServer;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// As rules and reviews spell it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A request on its way through admission; the object travels beside it.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) server: &'a ApiServer,
    pub(crate) who: &'a Identity,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) subresource: &'a str,
    pub(crate) operation: Operation,
    /// The namespace of the request; a namespace is in itself.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// What is stored, for updates and deletes.
    pub(crate) old: Option<&'a Value>,
    /// The options of the request, with their kind.
    pub(crate) options: &'a Value,
    pub(crate) dry_run: bool,
    pub(crate) warnings: &'a Warnings,
}

impl Attributes<'_> {
    /// Group, version and kind of the object at hand: a subresource may have its own.
    pub(crate) fn kind(&self) -> (String, String, String) {
        self.kind_in(self.resource)
    }

    /// The same for another version of the resource.
    pub(crate) fn kind_in(&self, resource: &Resource) -> (String, String, String) {
        resource
            .subresource(self.subresource)
            .and_then(|sub| sub.body.clone())
            .unwrap_or_else(|| {
                (
                    resource.group.clone(),
                    resource.version.clone(),
                    resource.kind.clone(),
                )
            })
    }

    /// Whether the body is not the resource itself (a `Scale`, a `Binding`).
    pub(crate) fn has_own_body(&self) -> bool {
        self.resource
            .subresource(self.subresource)
            .is_some_and(|sub| sub.body.is_some())
    }
}
