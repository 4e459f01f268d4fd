//! Who is asking.
//!
//! A client is known by its certificate (CN is the user, each O a group) or by a bearer token.
//! Without either it is `system:anonymous`, who may see health and version and nothing else. A
//! credential that is not known is 401, never anonymous.

mod certificate;

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::http::ResourceRequest;
use crate::status::{ApiError, Result, Subject};

pub(crate) use certificate::identity_of;

/// Somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// Groups the user is in.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user, who is also authenticated.
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        groups.push("system:authenticated".into());
        Self {
            user: user.into(),
            groups,
        }
    }

    /// The user who may do everything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", ["system:masters".to_owned()])
    }

    fn anonymous() -> Self {
        Self {
            user: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.user == "system:anonymous"
    }
}

/// Bearer tokens and whose they are.
#[derive(Debug, Default)]
pub(crate) struct Tokens(RwLock<HashMap<String, Identity>>);

impl Tokens {
    pub(crate) fn insert(&self, token: String, identity: Identity) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token, identity);
    }

    fn find(&self, token: &str) -> Option<Identity> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(token)
            .cloned()
    }

    /// Finds out who sent a request: `connection` is who the connection belongs to, if anybody.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        connection: Option<&Identity>,
    ) -> Result<Identity> {
        if let Some(identity) = connection {
            return Ok(identity.clone());
        }
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Ok(Identity::anonymous());
        };
        let token = header
            .to_str()
            .ok()
            .and_then(|text| text.strip_prefix("Bearer "));
        token
            .and_then(|token| self.find(token.trim()))
            .ok_or_else(ApiError::unauthorized)
    }
}

/// Paths that need no credentials.
const PUBLIC_PATHS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Whether `identity` may do this. Authenticated users may do everything: RBAC is not enforced yet.
pub(crate) fn authorize_resource(identity: &Identity, request: &ResourceRequest) -> Result<()> {
    if !identity.is_anonymous() {
        return Ok(());
    }
    let resource = match &request.subresource {
        Some(sub) => format!("{}/{sub}", request.resource),
        None => request.resource.clone(),
    };
    let place = match &request.namespace {
        Some(namespace) => format!(" in the namespace \"{namespace}\""),
        None => " at the cluster scope".to_owned(),
    };
    let why = format!(
        "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\"{place}",
        identity.user,
        request.verb.as_str(),
        request.group
    );
    let subject = Subject {
        group: &request.group,
        kind: &request.resource,
    };
    Err(ApiError::forbidden(
        subject,
        request.name.as_deref().unwrap_or_default(),
        &why,
    ))
}

/// The same for paths that are not resources.
pub(crate) fn authorize_path(identity: &Identity, method: &str, path: &str) -> Result<()> {
    if !identity.is_anonymous() || PUBLIC_PATHS.contains(&path) {
        return Ok(());
    }
    let message = format!(
        "forbidden: User \"{}\" cannot {} path \"{path}\"",
        identity.user,
        method.to_lowercase()
    );
    let mut error = ApiError::new(http::StatusCode::FORBIDDEN, "Forbidden", message);
    error.details = Some(serde_json::json!({}));
    Err(error)
}
