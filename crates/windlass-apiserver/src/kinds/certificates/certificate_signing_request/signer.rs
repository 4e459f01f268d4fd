//! Who may approve and sign certificates, and for whom none is made.
//!
//! A right to write the subresource is not enough: an approval needs `approve`, a certificate and
//! its conditions need `sign`, on the `signers` of that name (or of its domain: `example.com/*`).
//! The signer of the API server's clients makes nobody an administrator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;

use crate::admission::refused;
use crate::auth::{Action, ResourceAction};
use crate::object::meta;
use crate::status::Result;
use crate::webhook::{Attributes, Operation};

const GROUP: &str = "certificates.k8s.io";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

/// Judges a write of a certificate signing request.
pub(crate) fn validate(attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
    match (attributes.operation, attributes.subresource, object) {
        (Operation::Create, "", Some(object)) => check_subject(attributes, object),
        (Operation::Update, "approval", _) => check_signer(attributes, "approve"),
        (Operation::Update, "status", Some(object)) => {
            let unchanged = |part: &str| {
                let old = attributes.old.unwrap_or(&Value::Null);
                object["status"][part] == old["status"][part]
            };
            if unchanged("certificate") && unchanged("conditions") {
                return Ok(());
            }
            check_signer(attributes, "sign")
        }
        _ => Ok(()),
    }
}

/// Whether the writer has `verb` on the signer of the stored request.
fn check_signer(attributes: &Attributes<'_>, verb: &str) -> Result<()> {
    let request = attributes.old.unwrap_or(&Value::Null);
    let signer = request["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    let may = |name: &str| {
        let action = Action::Resource(ResourceAction {
            verb,
            group: GROUP,
            resource: "signers",
            name,
            ..ResourceAction::default()
        });
        let rbac = attributes.server.rbac();
        rbac.judge(attributes.who, &action).is_allowed()
    };
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(refused(attributes.resource, attributes.name, &why))
}

/// Refuses a client certificate for a group that may do everything.
fn check_subject(attributes: &Attributes<'_>, request: &Value) -> Result<()> {
    let signer = request["spec"]["signerName"].as_str().unwrap_or_default();
    if signer == CLIENT_SIGNER && organizations(request).iter().any(|group| group == MASTERS) {
        let why = format!("use of {signer} signer with {MASTERS} group is not allowed");
        return Err(refused(attributes.resource, meta(request, "name"), &why));
    }
    Ok(())
}

/// The organizations that a request, which was found to be one, asks for.
fn organizations(request: &Value) -> Vec<String> {
    let text = request["spec"]["request"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(text).unwrap_or_default();
    let Ok((_, block)) = parse_x509_pem(&pem) else {
        return Vec::new();
    };
    let Ok((_, parsed)) = X509CertificationRequest::from_der(&block.contents) else {
        return Vec::new();
    };
    let subject = &parsed.certification_request_info.subject;
    let names = subject.iter_organization();
    names
        .map(|name| String::from_utf8_lossy(name.as_slice()).into_owned())
        .collect()
}
