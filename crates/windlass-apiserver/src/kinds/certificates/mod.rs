//! The kinds of certificates.k8s.io.

pub(crate) mod certificate_signing_request;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "certificatesigningrequests" => &certificate_signing_request::CertificateSigningRequest,
        _ => return None,
    })
}
