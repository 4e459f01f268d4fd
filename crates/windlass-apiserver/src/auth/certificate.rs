//! The identity in a client certificate.

use std::fmt::Write as _;

use x509_parser::prelude::{FromDer, X509Certificate};

use super::{CREDENTIAL_ID, Identity};

/// CN is the user, each O a group. The chain was checked by TLS; a certificate without a CN is nobody.
pub(crate) fn identity_of(certificate: &[u8]) -> Option<Identity> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .filter_map(|group| group.as_str().ok())
        .map(str::to_owned)
        .collect::<Vec<_>>();
    let mut identity = Identity::new(user, groups);
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let mut id = String::from("X509SHA256=");
    for byte in digest.as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    identity.extra.insert(CREDENTIAL_ID.into(), vec![id]);
    Some(identity)
}
