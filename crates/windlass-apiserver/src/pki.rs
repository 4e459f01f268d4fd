//! Certificates of a cluster: its CA, and what the CA signs.

use std::net::IpAddr;

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
            key: key.serialize_pem(),
        })
    }
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
