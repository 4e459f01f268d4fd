//! The certificates of a run: one authority, so that every subject is reached in the same way.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use windlass_apiserver::pki::{Authority, KeyedCertificate};

use crate::error::{BenchError, During as _, Result};

/// How clients of each kind reach a subject.
pub(crate) struct Certificates {
    /// Who may do everything, whatever the roles say.
    pub(crate) admin: Arc<ClientConfig>,
    /// Somebody who may do what roles allow: who the load is sent as.
    pub(crate) user: Arc<ClientConfig>,
    /// Nobody: who brings a token instead.
    pub(crate) nobody: Arc<ClientConfig>,
}

/// The user that [`Certificates::user`] is.
pub(crate) const USER: &str = "bench";

fn certificates_error(error: impl std::fmt::Display) -> BenchError {
    BenchError::Certificates(error.to_string())
}

impl Certificates {
    /// Makes them, and writes what servers need into `folder`.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        let authority = Authority::create().map_err(certificates_error)?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let server = authority
            .server("bench", &[loopback], &["localhost"])
            .map_err(certificates_error)?;
        for (name, text) in [
            ("ca.crt", authority.pem().certificate.as_str()),
            ("ca.key", &authority.pem().key),
            ("server.crt", &server.certificate),
            ("server.key", &server.key),
        ] {
            std::fs::write(folder.join(name), text).during(format!("write {name}"))?;
        }
        let client = |user: &str, group: &str| {
            let keyed = authority.client(user, group).map_err(certificates_error)?;
            client_config(&authority, Some(&keyed))
        };
        Ok(Self {
            admin: client("admin", "system:masters")?,
            user: client(USER, "benches")?,
            nobody: client_config(&authority, None)?,
        })
    }
}

fn client_config(
    authority: &Authority,
    client: Option<&KeyedCertificate>,
) -> Result<Arc<ClientConfig>> {
    let read = |pem: &str| {
        CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(certificates_error)
    };
    let mut roots = RootCertStore::empty();
    for certificate in read(&authority.pem().certificate)? {
        roots.add(certificate).map_err(certificates_error)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(certificates_error)?
        .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some(keyed) => {
            let key =
                PrivateKeyDer::from_pem_slice(keyed.key.as_bytes()).map_err(certificates_error)?;
            builder
                .with_client_auth_cert(read(&keyed.certificate)?, key)
                .map_err(certificates_error)?
        }
    };
    Ok(Arc::new(config))
}
