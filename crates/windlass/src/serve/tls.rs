//! A certificate of our own, for a server whose clients check who asks rather than who answers.

use std::sync::Arc;

use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio_rustls::TlsAcceptor;

use crate::{Error, Result};

/// TLS with a certificate that is made now and known to nobody, as controller-runtime does where
/// none is given.
pub(super) fn own() -> Result<TlsAcceptor> {
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(Error::other)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
        .map_err(Error::other)?;
    // HTTP/1.1 only: scrapers need no more, and it leaves less to attack.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
