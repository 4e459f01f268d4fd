//! What the node's server shows its clients, and what it wants to see of them.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;

/// What the server shows its clients, and what it wants to see of them; all in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The server's certificate, with its chain; valid for 127.0.0.1.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// The authority that signs the certificates of clients.
    pub client_ca: String,
}

impl std::fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Why the server cannot use what it was given.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A text is not the PEM it should be.
    #[error("cannot read the {what} of the node's server: {source}")]
    Pem {
        /// Which one.
        what: &'static str,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// The authority of the clients cannot be used.
    #[error("cannot use the client authority of the node's server: {0}")]
    Authority(#[from] rustls::server::VerifierBuilderError),
    /// Certificate and key cannot be used.
    #[error("cannot use the certificate of the node's server: {0}")]
    Certificate(#[from] rustls::Error),
}

/// Turns the PEM texts into what the handshake needs.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let pem = |what| move |source| TlsError::Pem { what, source };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(tls.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(pem("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes()).map_err(pem("key"))?;
    let mut authorities = rustls::RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(tls.client_ca.as_bytes()) {
        authorities.add(authority.map_err(pem("client authority"))?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider.clone())
            .build()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    // Only HTTP/1.1 can be turned into something else.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
