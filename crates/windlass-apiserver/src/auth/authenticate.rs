//! Finding out who sent a request.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{Identity, account};
use crate::server::ApiServer;
use crate::status::{ApiError, Result};

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
