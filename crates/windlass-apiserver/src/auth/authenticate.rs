//! Finding out who sent a request.

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
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        connection: Option<&Arc<Identity>>,
    ) -> Result<Arc<Identity>> {
        if let Some(identity) = connection {
            return Ok(identity.clone());
        }
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Ok(Arc::new(Identity::anonymous()));
        };
        let token = header.to_str().ok();
        let token = token.and_then(|text| text.strip_prefix("Bearer "));
        let Some(token) = token.map(str::trim) else {
            return Err(ApiError::unauthorized());
        };
        if let Some(identity) = self.tokens().find(token) {
            return Ok(identity);
        }
        let audiences = [account::ISSUER.to_owned()];
        match account::authenticate(self, token, &audiences) {
            Ok((identity, _)) => Ok(identity),
            Err(error) => {
                tracing::debug!(%error, "a bearer token is refused");
                Err(ApiError::unauthorized())
            }
        }
    }
}
