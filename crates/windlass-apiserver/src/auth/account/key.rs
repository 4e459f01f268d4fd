//! The key that signs tokens.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PublicKeyData as _};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};

use crate::pki::PkiError;

/// A P-256 key that signs `ServiceAccount` tokens (ES256). Clones are the same key.
#[derive(Clone)]
pub struct SigningKey(Arc<Inner>);

struct Inner {
    pem: String,
    pair: EcdsaKeyPair,
    id: String,
}

// Keys never reach a log.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.0.id)
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// A new key.
    pub fn generate() -> Result<Self, PkiError> {
        Self::from_pair(&KeyPair::generate()?)
    }

    /// One that was kept.
    pub fn from_pem(pem: &str) -> Result<Self, PkiError> {
        Self::from_pair(&KeyPair::from_pem(pem)?)
    }

    fn from_pair(pair: &KeyPair) -> Result<Self, PkiError> {
        let public = pair.subject_public_key_info();
        let digest = ring::digest::digest(&ring::digest::SHA256, &public);
        let signing = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &pair.serialize_der(),
            &SystemRandom::new(),
        )
        .map_err(|error| PkiError::Key(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            pem: pair.serialize_pem(),
            pair: signing,
            id: URL_SAFE_NO_PAD.encode(digest),
        })))
    }

    /// The key, to keep.
    pub fn pem(&self) -> &str {
        &self.0.pem
    }

    /// What tells this key from another.
    pub(super) fn id(&self) -> &str {
        &self.0.id
    }

    /// The public key, as the two coordinates of a point: base64, as a JSON Web Key has them.
    pub(super) fn coordinates(&self) -> Option<(String, String)> {
        // Uncompressed: a mark, then both.
        let point = self.0.pair.public_key().as_ref().get(1..65)?;
        let (x, y) = point.split_at(32);
        Some((URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y)))
    }

    /// The signature of `message`; `None` when the system has no randomness to give.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.0.pair.sign(&SystemRandom::new(), message).ok()?;
        Some(signature.as_ref().to_vec())
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.0.pair.public_key())
            .verify(message, signature)
            .is_ok()
    }
}
