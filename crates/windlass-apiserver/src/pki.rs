//! Certificates of a cluster: its CA, and what the CA signs.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

/// How long certificates are valid, in days.
const VALID_DAYS: u64 = 365;

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct KeyedCertificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

// Keys never reach a log.
impl std::fmt::Debug for KeyedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedCertificate").finish_non_exhaustive()
    }
}

/// What can go wrong with certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// Making or reading a certificate failed.
    #[error("certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A key is not of the kind it must be.
    #[error("key: {0}")]
    Key(String),
}

/// A certificate authority.
#[derive(Clone, Debug)]
pub struct Authority(KeyedCertificate);

impl Authority {
    /// A new authority.
    pub fn create() -> Result<Self, PkiError> {
        let mut params = params("windlass-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        params.not_after = rcgen::date_time_ymd(4096, 1, 1);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self(KeyedCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }))
    }

    /// One that was kept.
    pub fn from_pem(pem: KeyedCertificate) -> Self {
        Self(pem)
    }

    /// Certificate and key, to keep.
    pub fn pem(&self) -> &KeyedCertificate {
        &self.0
    }

    /// A certificate for a server that is reached at these addresses and names.
    pub fn server(
        &self,
        name: &str,
        addresses: &[IpAddr],
        names: &[&str],
    ) -> Result<KeyedCertificate, PkiError> {
        let mut params = params(name, None);
        params.subject_alt_names = addresses
            .iter()
            .map(|address| SanType::IpAddress(*address))
            .collect();
        for name in names {
            params
                .subject_alt_names
                .push(SanType::DnsName((*name).try_into()?));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a client: CN is the user, O its group.
    pub fn client(&self, user: &str, group: &str) -> Result<KeyedCertificate, PkiError> {
        let mut params = params(user, Some(group));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<KeyedCertificate, PkiError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let issuer =
            Issuer::from_ca_cert_pem(&self.0.certificate, KeyPair::from_pem(&self.0.key)?)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(KeyedCertificate {
            certificate: certificate.pem(),
            key: ec_private_key(&key)?,
        })
    }
}

/// A P-256 key in the form of SEC 1 (`EC PRIVATE KEY`), which every client reads: some that read
/// PKCS#8, too, take a key in it for one of RSA.
fn ec_private_key(key: &KeyPair) -> Result<String, PkiError> {
    /// What comes before the secret number: the version, and the number's type and length.
    const BEFORE: [u8; 5] = [0x02, 1, 1, 0x04, 32];
    /// The curve: `[0] { prime256v1 }`.
    const CURVE: [u8; 12] = [0xa0, 10, 0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    let unusual = || PkiError::Key("it is not a P-256 key in PKCS#8".to_owned());
    let pkcs8 = key.serialize_der();
    let at = pkcs8.windows(BEFORE.len()).position(|part| part == BEFORE);
    let start = at.ok_or_else(unusual)? + BEFORE.len();
    let secret = pkcs8.get(start..start + 32).ok_or_else(unusual)?;
    let public = key.public_key_raw();
    if public.len() != 65 {
        return Err(unusual());
    }
    // `[1] { BIT STRING }`, of which no bit is unused.
    let content = [
        &BEFORE[..],
        secret,
        &CURVE,
        &[0xa1, 68, 0x03, 66, 0],
        public,
    ]
    .concat();
    let length = u8::try_from(content.len()).map_err(|_| unusual())?;
    let der = [&[0x30, length][..], &content].concat();
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .filter_map(|at| text.get(at..text.len().min(at + 64)))
        .collect();
    Ok(format!(
        "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n",
        lines.join("\n")
    ))
}

fn params(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
    }
    // A clock that runs a little behind must not refuse what was just made.
    let now = std::time::SystemTime::now();
    params.not_before = (now - std::time::Duration::from_hours(1)).into();
    params.not_after = (now + std::time::Duration::from_secs(86_400 * VALID_DAYS)).into();
    params
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn key_of_a_client_is_sec1_and_fits_its_certificate() {
        let keyed = Authority::create()
            .unwrap()
            .client("jane", "writers")
            .unwrap();
        assert!(keyed.key.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
        let key = PrivateKeyDer::from_pem_slice(keyed.key.as_bytes()).unwrap();
        let key = rustls::crypto::ring::sign::any_ecdsa_type(&key).unwrap();
        let certificate =
            rustls::pki_types::CertificateDer::from_pem_slice(keyed.certificate.as_bytes());
        let certified = rustls::sign::CertifiedKey::new(vec![certificate.unwrap()], key);
        certified.keys_match().unwrap();
    }
}
