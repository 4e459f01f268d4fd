//! Client certificates: asked for in the handshake, judged after it.
//!
//! Who shows a certificate of another authority, or one that has expired, is told so in HTTP (401),
//! as kube-apiserver does, instead of being cut off without a word. The handshake itself asks no
//! more than that the client has the certificate's key; until [`Shown`] has
//! looked at the chain nobody is anybody.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

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

    /// Who a client is at `now` that showed `chain`.
    fn judge(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Presented {
        let [certificate, intermediates @ ..] = chain else {
            return Presented::Nothing;
        };
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

/// What the client of one connection showed. Its requests are judged one by one: a certificate that
/// expires ends what can be asked over connections that are open, too.
pub(super) struct Shown {
    certificates: Arc<ClientCertificates>,
    chain: Vec<CertificateDer<'static>>,
    presented: Presented,
    /// Until when that holds: the end of the certificate that ends first.
    until: UnixTime,
}

impl Shown {
    pub(super) fn new(
        certificates: Arc<ClientCertificates>,
        chain: Option<&[CertificateDer<'_>]>,
        now: UnixTime,
    ) -> Self {
        let chain: Vec<_> = chain.into_iter().flatten().cloned().collect();
        let chain: Vec<_> = chain.into_iter().map(CertificateDer::into_owned).collect();
        let ends = chain.iter().map(|certificate| end_of(certificate)).min();
        Self {
            presented: certificates.judge(&chain, now),
            until: UnixTime::since_unix_epoch(Duration::from_secs(ends.unwrap_or(u64::MAX))),
            certificates,
            chain,
        }
    }

    /// Whether the client has shown a certificate that names a user.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.presented, Presented::Known(_))
    }

    /// Who it is by now.
    pub(super) fn at(&self, now: UnixTime) -> Presented {
        if now <= self.until {
            return self.presented.clone();
        }
        self.certificates.judge(&self.chain, now)
    }
}

/// The last second of a certificate.
fn end_of(certificate: &[u8]) -> u64 {
    let end = X509Certificate::from_der(certificate)
        .map(|(_, parsed)| parsed.validity().not_after.timestamp());
    u64::try_from(end.unwrap_or_default()).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::Authority;

    #[test]
    fn certificate_that_expired_is_refused_on_an_open_connection() {
        let authority = Authority::create().unwrap();
        let keyed = authority.client("jane", "writers").unwrap();
        let chain: Vec<_> = CertificateDer::pem_slice_iter(keyed.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap();
        let certificates = ClientCertificates::signed_by(&authority.pem().certificate).unwrap();
        let now = UnixTime::now();
        let shown = Shown::new(Arc::new(certificates), Some(&chain), now);
        assert!(matches!(shown.at(now), Presented::Known(_)));
        let end = Duration::from_secs(end_of(&chain[0]));
        let last = UnixTime::since_unix_epoch(end);
        assert!(matches!(shown.at(last), Presented::Known(_)));
        let after = UnixTime::since_unix_epoch(end + Duration::from_secs(2));
        assert!(matches!(shown.at(after), Presented::Unknown));
    }

    #[test]
    fn client_without_a_certificate_is_nobody_at_any_time() {
        let authority = Authority::create().unwrap();
        let certificates = ClientCertificates::signed_by(&authority.pem().certificate).unwrap();
        let shown = Shown::new(Arc::new(certificates), None, UnixTime::now());
        assert!(matches!(shown.at(UnixTime::now()), Presented::Nothing));
    }
}
