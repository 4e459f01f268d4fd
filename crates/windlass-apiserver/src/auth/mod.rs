//! Who is asking, and what they may do.
//!
//! A request is known by its client certificate (CN is the user, each O a group) or by a bearer
//! token: one the server was told of, or one it gave to a `ServiceAccount` (`account`). Without
//! either it is `system:anonymous`. A credential that is not known is 401, never anonymous. Who may
//! `impersonate` somebody can act as them by headers.
//!
//! What they may do is decided by roles (`rbac`); [`review`] lets clients ask for such decisions.

pub(crate) mod account;
mod action;
mod authenticate;
mod certificate;
mod impersonate;
pub(crate) mod rbac;
pub(crate) mod review;
mod socket;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use account::Accounts;
pub use account::SigningKey;
pub(crate) use action::{Action, ResourceAction, selected_name};
pub(crate) use certificate::identity_of;
pub(crate) use socket::move_token;

use crate::server::ApiServer;
use crate::status::Result;

/// The group of everybody who is known.
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
/// What tells one credential of a user from another, among a user's extra values.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// What tells this user from an earlier one of that name; empty where nothing does.
    pub uid: String,
    /// Groups the user is in.
    pub groups: Vec<String>,
    /// What else is known of the user, such as the pod a token was given to.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What a connection shows of its client.
#[derive(Clone, Debug)]
pub(crate) enum Presented {
    /// No certificate.
    Nothing,
    /// One that this cluster's authority signed.
    Known(Arc<Identity>),
    /// One that is not believed: of another authority, or expired.
    Unknown,
}

impl Identity {
    /// A user, who is also authenticated.
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        groups.push(AUTHENTICATED.into());
        Self {
            user: user.into(),
            groups,
            ..Self::default()
        }
    }

    /// The user who may do everything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", ["system:masters".to_owned()])
    }

    /// A `ServiceAccount`, as its tokens make it known.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(
            account::user_name(namespace, name),
            account::group_names(namespace),
        )
    }

    /// A `ServiceAccount` that somebody asks about, and that has not brought a token.
    pub(crate) fn unauthenticated_account(namespace: &str, name: &str) -> Self {
        Self {
            user: account::user_name(namespace, name),
            groups: account::group_names(namespace).into_iter().collect(),
            ..Self::default()
        }
    }

    fn anonymous() -> Self {
        Self {
            user: ANONYMOUS.into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }
}

impl ApiServer {
    /// Passes what `who` may do, and answers 403 to the rest.
    pub(crate) fn authorize(&self, who: &Identity, action: &Action<'_>) -> Result<()> {
        let judgement = self.rbac().judge(who, action);
        if judgement.is_allowed() {
            Ok(())
        } else {
            Err(action.refusal(who, &judgement.reason()))
        }
    }
}
