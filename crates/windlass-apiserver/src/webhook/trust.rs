//! Which certificates of webhooks are believed.
//!
//! What is in a `caBundle` is trusted as it stands, as in Go: also a certificate that is marked as
//! an authority's and that the server shows itself, such as `openssl req -x509` makes.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::transport::TransportError;

/// Believes what a bundle has signed, and what is in it.
#[derive(Debug)]
pub(super) struct Bundle {
    signed: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Bundle {
    /// What a bundle trusts; what the system does when it is empty.
    pub(super) fn from_pem(ca_bundle: &[u8]) -> Result<Self, TransportError> {
        let unreadable = || {
            TransportError(
                "unable to load root certificates: unable to parse bytes as PEM block".to_owned(),
            )
        };
        let mut roots = RootCertStore::empty();
        let mut trusted = Vec::new();
        if ca_bundle.is_empty() {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
        for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
            let certificate = certificate.map_err(|_| unreadable())?;
            trusted.push(certificate.clone());
            roots
                .add(certificate)
                .map_err(|error| TransportError(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(unreadable());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| TransportError(error.to_string()))?;
        Ok(Self { signed, trusted })
    }

    /// Checks a certificate that is trusted itself: its time, what it is for, and its names.
    fn check_trusted(
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let (from, until) = (
            parsed.validity().not_before.timestamp(),
            parsed.validity().not_after.timestamp(),
        );
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        if now < from {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > until {
            return Err(CertificateError::Expired.into());
        }
        let usage = parsed.extended_key_usage().ok().flatten();
        if usage.is_some_and(|usage| !usage.value.any && !usage.value.server_auth) {
            return Err(CertificateError::InvalidPurpose.into());
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.contains(end_entity) {
            return Self::check_trusted(end_entity, server_name, now);
        }
        self.signed
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    /// A certificate of an authority that also serves `names`, and who trusts it.
    fn self_signed(names: &[&str]) -> (CertificateDer<'static>, Bundle) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let bundle = Bundle::from_pem(certificate.pem().as_bytes()).unwrap();
        (certificate.der().clone(), bundle)
    }

    #[test]
    fn authority_in_the_bundle_is_believed_as_a_server() {
        let (certificate, bundle) = self_signed(&["hook.default.svc"]);
        let check = |name: &'static str, now| {
            let name = ServerName::try_from(name).unwrap();
            bundle.verify_server_cert(&certificate, &[], &name, &[], now)
        };
        let now = UnixTime::now();
        check("hook.default.svc", now).unwrap();
        assert!(check("other.default.svc", now).is_err());
        let long_after = UnixTime::since_unix_epoch(Duration::from_secs(4_000_000_000_000));
        let expired = check("hook.default.svc", long_after).unwrap_err();
        assert_eq!(
            expired,
            Error::InvalidCertificate(CertificateError::Expired)
        );
    }

    #[test]
    fn authority_that_is_not_in_the_bundle_is_not_believed() {
        let (_, bundle) = self_signed(&["hook.default.svc"]);
        let (other, _) = self_signed(&["hook.default.svc"]);
        let name = ServerName::try_from("hook.default.svc").unwrap();
        let checked = bundle.verify_server_cert(&other, &[], &name, &[], UnixTime::now());
        assert!(checked.is_err());
    }
}
