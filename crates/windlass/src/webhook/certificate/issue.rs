//! Making certificates, and the form they are kept in.

use std::{collections::BTreeMap, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use serde_json::{Map, Value};

use crate::{Error, Result};

/// How long certificates are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lives {
    /// The one that is shown.
    pub(crate) serving: Duration,
    /// The CA that signs it.
    pub(crate) authority: Duration,
}

impl Default for Lives {
    fn default() -> Self {
        Self {
            serving: Duration::from_hours(24 * 90),
            authority: Duration::from_hours(24 * 730),
        }
    }
}

/// Whom a certificate is for, from when, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) names: &'a [String],
    pub(crate) now: Timestamp,
    pub(crate) lives: Lives,
}
/// Clocks that run behind must not refuse what was just made.
const SKEW: Duration = Duration::from_hours(1);

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keyed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// What the Secret holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(super) ca: Keyed,
    pub(super) next: Option<Keyed>,
    /// The CA before, while it is still valid.
    pub(super) previous: Option<String>,
    pub(crate) serving: Keyed,
}

impl Kept {
    /// A CA and a certificate for these names.
    pub(crate) fn issue(terms: Terms<'_>) -> Result<Self> {
        let ca = authority(terms)?;
        let serving = sign(&ca, terms)?;
        Ok(Self {
            ca,
            next: None,
            previous: None,
            serving,
        })
    }

    /// The certificate again, with its time before it.
    pub(crate) fn renew(&mut self, terms: Terms<'_>) -> Result<()> {
        self.serving = sign(&self.ca, terms)?;
        Ok(())
    }

    /// The CA to come.
    pub(crate) fn introduce(&mut self, terms: Terms<'_>) -> Result<()> {
        self.next = Some(authority(terms)?);
        Ok(())
    }

    /// The CA to come takes over.
    pub(crate) fn promote(&mut self, terms: Terms<'_>) -> Result<()> {
        if let Some(next) = self.next.take() {
            let before = std::mem::replace(&mut self.ca, next);
            self.previous = Some(before.certificate);
            self.renew(terms)?;
        }
        Ok(())
    }

    /// What the API server must trust, as PEM.
    pub(crate) fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|next| next.certificate.as_str());
        let all = [
            Some(self.ca.certificate.as_str()),
            next,
            self.previous.as_deref(),
        ];
        let mut bundle = String::new();
        for pem in all.into_iter().flatten() {
            bundle.push_str(pem.trim());
            bundle.push('\n');
        }
        bundle
    }

    /// Whether another CA is about to take over.
    pub(crate) fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// Fails if a key does not belong to its certificate, or if the CA does not vouch for what it
    /// should have signed: a hand edit, or another tool's Secret.
    pub(crate) fn check(&self) -> Result<()> {
        certified(&self.ca)?;
        if let Some(next) = &self.next {
            certified(next)?;
        }
        let serving = certified(&self.serving)?;
        let wrong = |why: &str| Error::other(format!("cannot use the certificate: {why}"));
        let authority = chain_of(&self.ca.certificate)?;
        let (Some(authority), Some(leaf)) = (authority.first(), serving.cert.first()) else {
            return Err(wrong("there is none"));
        };
        let parsed = |der| x509_parser::parse_x509_certificate(der);
        let (Ok((_, authority)), Ok((_, leaf))) = (parsed(authority), parsed(leaf)) else {
            return Err(wrong("it is no X.509 certificate"));
        };
        leaf.verify_signature(Some(authority.public_key()))
            .map_err(|_| wrong("its CA did not sign it"))
    }

    /// Reads the `data` of the Secret; none when it is not complete.
    pub(crate) fn read(data: &Value) -> Option<Self> {
        let text = |key: &str| {
            let bytes = STANDARD.decode(data[key].as_str()?).ok()?;
            String::from_utf8(bytes)
                .ok()
                .filter(|text| !text.is_empty())
        };
        let keyed = |certificate: &str, key: &str| {
            Some(Keyed {
                certificate: text(certificate)?,
                key: text(key)?,
            })
        };
        Some(Self {
            ca: keyed("ca.crt", "ca.key")?,
            next: keyed("next-ca.crt", "next-ca.key"),
            previous: text("previous-ca.crt"),
            serving: keyed("tls.crt", "tls.key")?,
        })
    }

    /// The `data` of the Secret.
    pub(crate) fn write(&self) -> Value {
        let mut data: BTreeMap<&str, &str> = BTreeMap::from([
            ("ca.crt", self.ca.certificate.as_str()),
            ("ca.key", self.ca.key.as_str()),
            ("tls.crt", self.serving.certificate.as_str()),
            ("tls.key", self.serving.key.as_str()),
        ]);
        if let Some(next) = &self.next {
            data.insert("next-ca.crt", &next.certificate);
            data.insert("next-ca.key", &next.key);
        }
        if let Some(previous) = &self.previous {
            data.insert("previous-ca.crt", previous);
        }
        let data = data
            .into_iter()
            .map(|(key, text)| (key.to_owned(), Value::from(STANDARD.encode(text))));
        Value::Object(data.collect::<Map<_, _>>())
    }
}

/// The time a certificate (PEM) is valid: from, and until.
pub(super) fn validity(pem: &str) -> Option<(Timestamp, Timestamp)> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(&der).ok()?;
    let validity = certificate.validity();
    Some((
        Timestamp::from_second(validity.not_before.timestamp()).ok()?,
        Timestamp::from_second(validity.not_after.timestamp()).ok()?,
    ))
}

/// The names a certificate (PEM) is for.
pub(super) fn names_of(pem: &str) -> Vec<String> {
    let names = || -> Option<Vec<String>> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).ok()?;
        let names = certificate.subject_alternative_name().ok()??;
        let names = names
            .value
            .general_names
            .iter()
            .filter_map(|name| match name {
                x509_parser::extensions::GeneralName::DNSName(name) => Some((*name).to_owned()),
                x509_parser::extensions::GeneralName::IPAddress(bytes) => match bytes.len() {
                    4 => Some(
                        std::net::Ipv4Addr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string(),
                    ),
                    16 => Some(
                        std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string(),
                    ),
                    _ => None,
                },
                _ => None,
            });
        Some(names.collect())
    };
    names().unwrap_or_default()
}

/// The certificates of a chain (PEM), its own first.
pub(crate) fn chain_of(pem: &str) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::other(format!("cannot read a certificate: {error}")))
}

/// A certificate with its key, as TLS uses them: they belong together.
pub(crate) fn certified(keyed: &Keyed) -> Result<CertifiedKey> {
    let chain = chain_of(&keyed.certificate)?;
    let unusable = |error: &dyn std::fmt::Display| {
        Error::other(format!("cannot use the webhook certificate: {error}"))
    };
    let key =
        PrivateKeyDer::from_pem_slice(keyed.key.as_bytes()).map_err(|error| unusable(&error))?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map_err(|error| unusable(&error))
}

fn authority(terms: Terms<'_>) -> Result<Keyed> {
    let mut params = params("webhook-ca", terms.now, terms.lives.authority);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let make = || -> Result<Keyed, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Keyed {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    };
    make().map_err(|error| Error::other(format!("cannot make a CA: {error}")))
}

fn sign(ca: &Keyed, terms: Terms<'_>) -> Result<Keyed> {
    let make = || -> Result<Keyed, rcgen::Error> {
        let first = terms.names.first().map_or("webhook", String::as_str);
        let mut params = params(first, terms.now, terms.lives.serving);
        for name in terms.names {
            params.subject_alt_names.push(match name.parse() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let issuer = Issuer::from_ca_cert_pem(&ca.certificate, KeyPair::from_pem(&ca.key)?)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Keyed {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    };
    make().map_err(|error| Error::other(format!("cannot sign a certificate: {error}")))
}

fn params(name: &str, now: Timestamp, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // Two CAs of one operator must not be mistaken for each other.
    let subject = format!("{name} {}", now.as_second());
    let subject = if name == "webhook-ca" {
        subject
    } else {
        name.to_owned()
    };
    params.distinguished_name.push(DnType::CommonName, subject);
    let system = std::time::SystemTime::from(now);
    params.not_before = (system - SKEW).into();
    params.not_after = (system + life).into();
    params
}
