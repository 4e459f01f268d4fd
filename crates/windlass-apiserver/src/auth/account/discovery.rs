//! Who signs tokens, and by which key: for those who check tokens without asking this server.

use serde_json::{Value, json};

use super::Accounts;
use super::claims::ALGORITHM;

/// Where the keys are.
const KEYS_PATH: &str = "/openid/v1/jwks";

impl Accounts {
    /// `/.well-known/openid-configuration`, of a server that is reached at `host`.
    pub(crate) fn configuration(&self, host: &str) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": format!("https://{host}{KEYS_PATH}"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        })
    }

    /// `/openid/v1/jwks`: the public keys by which tokens are signed.
    pub(crate) fn public_keys(&self) -> Value {
        let keys = self.key.iter().filter_map(|key| {
            let (x, y) = key.coordinates()?;
            Some(json!({
                "use": "sig",
                "kty": "EC",
                "kid": key.id(),
                "crv": "P-256",
                "alg": ALGORITHM,
                "x": x,
                "y": y,
            }))
        });
        json!({"keys": keys.collect::<Vec<_>>()})
    }
}
