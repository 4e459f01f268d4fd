//! Finding out who sent a request.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{Identity, Presented, account};
use crate::server::ApiServer;
use crate::status::{ApiError, Result};

impl ApiServer {
    /// Who sent a request over a connection whose client presented itself like this. A certificate
    /// that is not believed leaves it to a token; without one it is a credential that is not known.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        presented: &Presented,
    ) -> Result<Arc<Identity>> {
        if let Presented::Known(identity) = presented {
            return Ok(identity.clone());
        }
        let Some(header) = headers.get(AUTHORIZATION) else {
            return match presented {
                Presented::Unknown => Err(ApiError::unauthorized()),
                _ => Ok(Arc::new(Identity::anonymous())),
            };
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
