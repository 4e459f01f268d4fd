//! TLS to receivers.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{SendError, Trust};

/// Speaks TLS with a host over a connection.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
    trust: &Trust,
) -> Result<TlsStream<TcpStream>, SendError> {
    let failed = |error: &dyn std::fmt::Display| SendError::Failed(format!("TLS: {error}"));
    let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(&error))?;
    let connector = TlsConnector::from(Arc::new(config(trust)?));
    let connected = connector.connect(name, stream).await;
    connected.map_err(|error| failed(&error))
}

fn config(trust: &Trust) -> Result<ClientConfig, SendError> {
    let failed = |error: &dyn std::fmt::Display| SendError::Failed(format!("TLS: {error}"));
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::Anyone => {
            let anyone = Arc::new(Anyone(provider));
            let builder = builder.dangerous().with_custom_certificate_verifier(anyone);
            return Ok(builder.with_no_client_auth());
        }
        Trust::System => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Trust::File(file) => {
            let certificates = CertificateDer::pem_file_iter(file);
            for certificate in certificates.map_err(|error| failed(&error))? {
                let certificate = certificate.map_err(|error| failed(&error))?;
                roots.add(certificate).map_err(|error| failed(&error))?;
            }
        }
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Believes anyone, as `tlsskip` asks for.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
