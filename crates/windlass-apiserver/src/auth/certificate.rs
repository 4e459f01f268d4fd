//! The identity in a client certificate.

use x509_parser::prelude::{FromDer, X509Certificate};

use super::Identity;

/// CN is the user, each O a group. The chain was checked by TLS; a certificate without a CN is nobody.
pub(crate) fn identity_of(certificate: &[u8]) -> Option<Identity> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .filter_map(|group| group.as_str().ok())
        .map(str::to_owned)
        .collect::<Vec<_>>();
    Some(Identity::new(user, groups))
}
