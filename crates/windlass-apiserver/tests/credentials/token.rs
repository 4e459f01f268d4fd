//! Tokens that somebody has tampered with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use windlass_apiserver::SigningKey;

fn parts(token: &str) -> [&str; 3] {
    let parts: Vec<&str> = token.split('.').collect();
    parts.try_into().expect("header, claims and signature")
}

fn claims_of(token: &str) -> Value {
    let claims = URL_SAFE_NO_PAD.decode(parts(token)[1]).expect("base64");
    serde_json::from_slice(&claims).expect("JSON")
}

/// The token with other claims, signed by the key that signs all of the server's.
pub(crate) fn resigned(token: &str, key: &SigningKey, change: impl FnOnce(&mut Value)) -> String {
    let mut claims = claims_of(token);
    change(&mut claims);
    let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
    let message = format!("{}.{claims}", parts(token)[0]);
    let der = PrivatePkcs8KeyDer::from_pem_slice(key.pem().as_bytes()).expect("PEM");
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        der.secret_pkcs8_der(),
        &random,
    );
    let signature = pair.expect("a key").sign(&random, message.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(signature.expect("a signature"));
    format!("{message}.{signature}")
}

/// The token with claims of more, and the signature it had.
pub(crate) fn with_claims_changed(token: &str) -> String {
    let [header, _, signature] = parts(token);
    let mut claims = claims_of(token);
    claims["sub"] = "system:admin".into();
    let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
    format!("{header}.{claims}.{signature}")
}

/// The token, saying that it needs no signature.
pub(crate) fn unsigned(token: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    format!("{header}.{}.", parts(token)[1])
}
