//! What somebody wants to do, as authorization sees it, and the sentence that says no.

use serde_json::json;

use super::Identity;
use crate::http::{Query, ResourceRequest, Verb};
use crate::kinds;
use crate::status::{ApiError, Subject};

/// Something that can be allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'a> {
    Resource(ResourceAction<'a>),
    /// A path that is no resource, and the method in lower case.
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

/// A verb on a resource; parts that are not given are empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourceAction<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// The name that a list, watch or deletion of a collection is restricted to counts as its name.
pub(crate) fn selected_name(request: &ResourceRequest, query: &Query) -> Option<String> {
    let collection = matches!(
        request.verb,
        Verb::List | Verb::Watch | Verb::DeleteCollection
    );
    let text = query.get("fieldSelector").filter(|_| collection)?;
    windlass_apimachinery::selector::exact_name(text)
}

impl<'a> ResourceAction<'a> {
    /// What a request asks for. `selected` is the name its selector gives.
    pub(crate) fn of(request: &'a ResourceRequest, selected: Option<&'a str>) -> Self {
        let name = request.name.as_deref().or(selected).unwrap_or_default();
        // A Namespace is in itself.
        let strategy = kinds::find(&request.group, &request.version, &request.resource);
        let namespace = if strategy.is_namespace() {
            request.name.as_deref()
        } else {
            request.namespace.as_deref()
        };
        Self {
            verb: request.verb.as_str(),
            group: &request.group,
            resource: &request.resource,
            subresource: request.subresource.as_deref().unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
            name,
        }
    }
}

impl<'a> Action<'a> {
    pub(super) fn verb(&self) -> &'a str {
        match self {
            Self::Resource(action) => action.verb,
            Self::Path { verb, .. } => verb,
        }
    }

    /// The same with another verb.
    pub(super) fn with_verb<'b>(&self, verb: &'b str) -> Action<'b>
    where
        'a: 'b,
    {
        match *self {
            Self::Resource(action) => Action::Resource(ResourceAction { verb, ..action }),
            Self::Path { path, .. } => Action::Path { verb, path },
        }
    }

    /// Where the action is: only roles bound there, or everywhere, count.
    pub(crate) fn namespace(&self) -> &str {
        match self {
            Self::Resource(action) => action.namespace,
            Self::Path { .. } => "",
        }
    }

    /// The 403 that `who` gets, with what went wrong on the way, if anything did.
    pub(super) fn refusal(&self, who: &Identity, reason: &str) -> ApiError {
        let user = &who.user;
        let mut why = match self {
            Self::Path { verb, path } => format!("User {user:?} cannot {verb} path {path:?}"),
            Self::Resource(action) => {
                let mut resource = action.resource.to_owned();
                if !action.subresource.is_empty() {
                    resource = format!("{resource}/{}", action.subresource);
                }
                let place = match action.namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                format!(
                    "User {user:?} cannot {} resource {resource:?} in API group {:?} {place}",
                    action.verb, action.group
                )
            }
        };
        // What the client sent must not read as HTML.
        why = why
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        match self {
            Self::Path { .. } => {
                let message = format!("forbidden: {why}");
                let mut error = ApiError::new(http::StatusCode::FORBIDDEN, "Forbidden", message);
                error.details = Some(json!({}));
                error
            }
            Self::Resource(action) => {
                let subject = Subject {
                    group: action.group,
                    kind: action.resource,
                };
                ApiError::forbidden(subject, action.name, &why)
            }
        }
    }
}
