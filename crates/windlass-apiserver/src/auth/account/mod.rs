//! Tokens of `ServiceAccount`s.
//!
//! A token says which account of which uid it is for, until when, for whom (its audiences), and
//! which object it goes with; the server's key signs it. It is good while the signature and the
//! times are, and the account and that object are still there with those uids. A signature is
//! checked once: tokens that passed are remembered, the rest is looked at every time.

mod bound;
mod claims;
mod discovery;
mod key;
mod request;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use key::SigningKey;

use bound::Bound;
use claims::{Claims, Reference};
pub(crate) use request::create as create_token;

use super::{CREDENTIAL_ID, Identity};
use crate::server::ApiServer;
use crate::store::Stored;

/// Who signs tokens, where nothing else is configured.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// How far the clocks of a client and the server may be apart, in seconds.
const LEEWAY: i64 = 60;
/// How many tokens are remembered.
const REMEMBERED: usize = 1024;
const PREFIX: &str = "system:serviceaccount:";

/// The user that a `ServiceAccount` is.
pub(crate) fn user_name(namespace: &str, name: &str) -> String {
    format!("{PREFIX}{namespace}:{name}")
}

/// Namespace and name of the `ServiceAccount` that a user is, if it is one.
pub(super) fn split_user_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(PREFIX)?.split_once(':')?;
    let is_account = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    is_account.then_some((namespace, name))
}

/// The groups of every `ServiceAccount` in a namespace.
pub(super) fn group_names(namespace: &str) -> [String; 2] {
    [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

/// Why a token is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// It was not made by this server, or changed since.
    #[error("invalid bearer token")]
    Invalid,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error("token audiences {0:?} is invalid for the target audiences {1:?}")]
    Audience(Vec<String>, Vec<String>),
    #[error("service account token has been invalidated")]
    Invalidated,
    #[error("service account {0}/{1} has been deleted")]
    Deleted(String, String),
}

/// The key, and the tokens that were found to be signed by it.
#[derive(Debug)]
pub(crate) struct Accounts {
    key: Option<SigningKey>,
    issuer: String,
    verified: Mutex<HashMap<String, Arc<Verified>>>,
}

/// What a token of this server says, and whom it is of.
#[derive(Debug)]
struct Verified {
    claims: Claims,
    identity: Arc<Identity>,
}

impl Accounts {
    /// Signs by `key` as `issuer`; by a key of its own when none is given.
    pub(crate) fn new(key: Option<SigningKey>, issuer: String) -> Self {
        Self {
            key: key.or_else(|| SigningKey::generate().ok()),
            issuer,
            verified: Mutex::default(),
        }
    }

    /// The issuer of tokens, and their audience by default.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Checks that a token is of this server.
    fn verify(&self, token: &str) -> Result<Arc<Verified>, TokenError> {
        let lock = || self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verified) = lock().get(token) {
            return Ok(verified.clone());
        }
        let key = self.key.as_ref().ok_or(TokenError::Invalid)?;
        let claims = Claims::read(token, key).ok_or(TokenError::Invalid)?;
        let identity = Arc::new(identity_of(&claims));
        let verified = Arc::new(Verified { claims, identity });
        let mut known = lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(token.to_owned(), verified.clone());
        Ok(verified)
    }
}

/// Whose token this is, and which of `audiences` it is for.
pub(super) fn authenticate(
    server: &ApiServer,
    token: &str,
    audiences: &[String],
) -> Result<(Arc<Identity>, Vec<String>), TokenError> {
    let verified = server.accounts().verify(token)?;
    let claims = &verified.claims;
    let now = server.clock().now().as_second();
    if claims.iss != server.accounts().issuer {
        return Err(TokenError::Invalid);
    }
    if now.saturating_sub(LEEWAY) > claims.exp {
        return Err(TokenError::Expired);
    }
    if now.saturating_add(LEEWAY) < claims.nbf {
        return Err(TokenError::NotYet);
    }
    let shared: Vec<String> = audiences
        .iter()
        .filter(|audience| claims.aud.contains(audience))
        .cloned()
        .collect();
    if shared.is_empty() {
        return Err(TokenError::Audience(claims.aud.clone(), audiences.to_vec()));
    }
    let subject = &claims.kubernetes;
    let namespace = &subject.namespace;
    let find = |sort: Bound, of: &Reference| {
        let found = sort.find(server, namespace, &of.name);
        found.filter(|found| *found.uid == *of.uid)
    };
    let is_there = |sort, of: Option<&Reference>| {
        of.is_none_or(|of| find(sort, of).is_some_and(|found| !is_gone(&found, now)))
    };
    // The node of a pod's token is only told, not asked for.
    let bound_node = subject.node.as_ref().filter(|_| subject.pod.is_none());
    let account = &subject.serviceaccount;
    match find(Bound::Account, account) {
        None => return Err(TokenError::Invalidated),
        Some(found) if is_gone(&found, now) => {
            return Err(TokenError::Deleted(namespace.clone(), account.name.clone()));
        }
        Some(_) => {}
    }
    if !is_there(Bound::Pod, subject.pod.as_ref())
        || !is_there(Bound::Secret, subject.secret.as_ref())
        || !is_there(Bound::Node, bound_node)
    {
        return Err(TokenError::Invalidated);
    }
    Ok((verified.identity.clone(), shared))
}

/// Whether an object is only there because something holds it: its time to go is over, with the
/// leeway of clocks.
fn is_gone(object: &Stored, now: i64) -> bool {
    if !object.terminating {
        return false;
    }
    let end = &object.value()["metadata"]["deletionTimestamp"];
    let end: Option<jiff::Timestamp> = end.as_str().and_then(|end| end.parse().ok());
    end.is_some_and(|end| end.as_second() < now.saturating_sub(LEEWAY))
}

/// Whom a token is of.
fn identity_of(claims: &Claims) -> Identity {
    let subject = &claims.kubernetes;
    let mut identity = Identity::service_account(&subject.namespace, &subject.serviceaccount.name);
    identity.uid.clone_from(&subject.serviceaccount.uid);
    let mut tell = |key: &str, value: String| {
        if !value.is_empty() {
            identity.extra.insert(key.to_owned(), vec![value]);
        }
    };
    tell(CREDENTIAL_ID, format!("JTI={}", claims.jti));
    for (what, of) in [("pod", &subject.pod), ("node", &subject.node)] {
        if let Some(of) = of {
            let key = |part: &str| format!("authentication.kubernetes.io/{what}-{part}");
            tell(&key("name"), of.name.clone());
            tell(&key("uid"), of.uid.clone());
        }
    }
    identity
}
