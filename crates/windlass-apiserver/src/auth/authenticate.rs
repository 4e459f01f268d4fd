//! Finding out who sent a request.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

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
        // A token of any bytes is a credential: one that is not known, if they are no text.
        let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let header = header.map(String::from_utf8_lossy);
        let Some(token) = header.as_deref().and_then(bearer_token) else {
            return match presented {
                Presented::Unknown => Err(ApiError::unauthorized()),
                _ => Ok(Arc::new(Identity::anonymous())),
            };
        };
        let audiences = [self.accounts().issuer().to_owned()];
        match account::authenticate(self, token, &audiences) {
            Ok((identity, _)) => Ok(identity),
            Err(error) => {
                tracing::debug!(%error, "a bearer token is refused");
                Err(ApiError::unauthorized())
            }
        }
    }
}

/// The token in a header, if it has one: passwords and empty tokens are no credentials, good or bad.
fn bearer_token(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::bearer_token;

    #[test]
    fn a_header_has_a_token_where_kubernetes_finds_one() {
        assert_eq!(bearer_token("Bearer a.b.c"), Some("a.b.c"));
        assert_eq!(bearer_token(" bearer a "), Some("a"));
        assert_eq!(bearer_token("Bearer a b"), Some("a"));
        for none in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer  a",
            "Basic YTpi",
            "Bearera",
        ] {
            assert_eq!(bearer_token(none), None, "{none:?}");
        }
    }
}
