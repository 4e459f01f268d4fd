//! What a token says, and its form: a JSON Web Token, signed with ES256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SigningKey;

pub(super) const ALGORITHM: &str = "ES256";

/// An object a token goes with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reference {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
}

/// Whose the token is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kubernetes {
    pub(super) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Reference>,
    pub(super) serviceaccount: Reference,
}

/// Everything a token says; times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) aud: Vec<String>,
    pub(super) exp: i64,
    pub(super) iat: i64,
    pub(super) iss: String,
    pub(super) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(super) kubernetes: Kubernetes,
    pub(super) nbf: i64,
    pub(super) sub: String,
}

impl Claims {
    /// The token that says this.
    pub(super) fn sign(&self, key: &SigningKey) -> Option<String> {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = encode(&json!({"alg": ALGORITHM, "kid": key.id()}));
        let claims = encode(&serde_json::to_value(self).ok()?);
        let message = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes())?);
        Some(format!("{message}.{signature}"))
    }

    /// What a token says, if `key` signed it.
    pub(super) fn read(token: &str, key: &SigningKey) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
        // The token may not choose how it is checked.
        if header["alg"] != ALGORITHM || !key.has_signed(message.as_bytes(), &decode(signature)?) {
            return None;
        }
        serde_json::from_slice(&decode(claims)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            exp: 7,
            sub: "somebody".into(),
            ..Claims::default()
        }
    }

    #[test]
    fn a_token_says_what_was_signed() {
        let key = SigningKey::generate().unwrap();
        let token = claims().sign(&key).unwrap();
        assert_eq!(Claims::read(&token, &key), Some(claims()));
        // A key that was kept reads what it signed before.
        let kept = SigningKey::from_pem(key.pem()).unwrap();
        assert_eq!(Claims::read(&token, &kept), Some(claims()));
    }

    #[test]
    fn another_key_or_a_changed_claim_is_refused() {
        let key = SigningKey::generate().unwrap();
        let token = claims().sign(&key).unwrap();
        let other = SigningKey::generate().unwrap();
        assert_eq!(Claims::read(&token, &other), None);
        let mut parts: Vec<&str> = token.split('.').collect();
        let mut more = claims();
        more.exp = 70;
        let more = URL_SAFE_NO_PAD.encode(serde_json::to_string(&more).unwrap());
        parts[1] = &more;
        assert_eq!(Claims::read(&parts.join("."), &key), None);
        // No signature is none, whatever the header asks for.
        let bare = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        assert_eq!(Claims::read(&format!("{bare}.{more}."), &key), None);
    }
}
