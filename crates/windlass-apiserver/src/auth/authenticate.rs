//! Finding out who sent a request.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{Identity, account};
use crate::server::ApiServer;
use crate::status::{ApiError, Result};

/// Bearer tokens the server was told of, and whose they are.
#[derive(Debug, Default)]
pub(crate) struct Tokens(RwLock<HashMap<String, Arc<Identity>>>);

impl Tokens {
    pub(crate) fn insert(&self, token: String, identity: Identity) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token, Arc::new(identity));
    }

    pub(super) fn find(&self, token: &str) -> Option<Arc<Identity>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(token)
            .cloned()
    }
}

impl ApiServer {
    /// Who sent a request: `connection` is who the connection belongs to, if anybody.
    pub(crate) fn authenticate<'a>(
        &self,
        headers: &HeaderMap,
        connection: Option<&'a Identity>,
    ) -> Result<Cow<'a, Identity>> {
        if let Some(identity) = connection {
            return Ok(Cow::Borrowed(identity));
        }
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Ok(Cow::Owned(Identity::anonymous()));
        };
        let token = header.to_str().ok();
        let token = token.and_then(|text| text.strip_prefix("Bearer "));
        let Some(token) = token.map(str::trim) else {
            return Err(ApiError::unauthorized());
        };
        if let Some(identity) = self.tokens().find(token) {
            return Ok(Cow::Owned(Identity::clone(&identity)));
        }
        let audiences = [account::ISSUER.to_owned()];
        match account::authenticate(self, token, &audiences) {
            Ok((identity, _)) => Ok(Cow::Owned(identity)),
            Err(error) => {
                tracing::debug!(%error, "a bearer token is refused");
                Err(ApiError::unauthorized())
            }
        }
    }
}
