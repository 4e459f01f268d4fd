//! Client certificates: asked for in the handshake, judged after it.
//!
//! Who shows a certificate of another authority, or one that has expired, is told so in HTTP (401),
//! as kube-apiserver does, instead of being cut off without a word. The handshake itself asks no
//! more than that the client has the certificate's key; until [`ClientCertificates::judge`] has
//! looked at the chain nobody is anybody.

use std::io;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use crate::auth::{Presented, identity_of};

/// The certificates of one authority.
#[derive(Debug)]
pub(super) struct ClientCertificates(Arc<dyn ClientCertVerifier>);

impl ClientCertificates {
    /// Believes those that `authority` (PEM) has signed.
    pub(super) fn signed_by(authority: &str) -> io::Result<Self> {
        let invalid = |error: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("client CA: {error}"))
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            let certificate = certificate.map_err(|error| invalid(&error))?;
            roots.add(certificate).map_err(|error| invalid(&error))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| invalid(&error))?;
        Ok(Self(verifier))
    }

    /// Who a connection belongs to whose client showed `chain`.
    pub(super) fn judge(&self, chain: Option<&[CertificateDer<'_>]>) -> Presented {
        let Some([certificate, intermediates @ ..]) = chain else {
            return Presented::Nothing;
        };
        let now = UnixTime::now();
        if let Err(error) = self.0.verify_client_cert(certificate, intermediates, now) {
            tracing::debug!(%error, "a client certificate is refused");
            return Presented::Unknown;
        }
        match identity_of(certificate) {
            Some(identity) => Presented::Known(Arc::new(identity)),
            // A certificate without a user's name says nothing, as in Kubernetes.
            None => Presented::Nothing,
        }
    }
}

impl ClientCertVerifier for ClientCertificates {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // Judged after the handshake, and again when a session is resumed.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
