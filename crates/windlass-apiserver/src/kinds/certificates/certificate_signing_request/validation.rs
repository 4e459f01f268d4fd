//! `CertificateSigningRequests`.

use std::collections::BTreeSet;

use base64::Engine as _;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

use crate::names;
use crate::status::{Cause, field};
use crate::validation::at::At;

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The PEM blocks in a field of bytes.
fn blocks(field: &At<'_, '_>) -> Vec<Pem> {
    let text = field.as_text().replace(['\n', '\r'], "");
    let engine = base64::engine::general_purpose::STANDARD;
    let bytes = engine.decode(text).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Pem::iter_from_buffer(&bytes)
        .filter_map(Result::ok)
        // A block that is cut off is none.
        .filter(|block| text.contains(&format!("-----END {}-----", block.label)))
        .collect()
}

pub(crate) fn check(request: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(request, "").then("spec");
    let asked = spec.child("request");
    match blocks(&asked).first() {
        Some(block) if block.label == "CERTIFICATE REQUEST" => {
            if let Err(error) = X509CertificationRequest::from_der(&block.contents) {
                causes.push(asked.invalid(&error.to_string()));
            }
        }
        _ => causes.push(asked.invalid("PEM block type must be CERTIFICATE REQUEST")),
    }
    let usages = spec.child("usages");
    if usages.len() == 0 {
        causes.push(usages.required(""));
    }
    let mut seen = BTreeSet::new();
    for usage in usages.elements() {
        usage.one_of_if_set(USAGES, causes);
        if !seen.insert(usage.as_text()) {
            causes.push(usage.duplicate());
        }
    }
    check_signer(&spec.child("signerName"), causes);
    let seconds = spec.child("expirationSeconds");
    if seconds.is_set() && seconds.as_int() < 600 {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(seconds.invalid(why));
    }
    check_conditions(
        &At::root(request, "").then("status").then("conditions"),
        causes,
    );
}

/// `example.com/signer-name`.
fn check_signer(signer: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if signer.as_text().is_empty() {
        causes.push(signer.required(""));
        return;
    }
    let parts: Vec<&str> = signer.as_text().split('/').collect();
    let [domain, path] = parts.as_slice() else {
        causes.push(signer.invalid(
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ));
        return;
    };
    let wrong = |part: &str, label: &str, why: &str| {
        let why = format!("validating label {label:?}: {why}");
        field::invalid(signer.path(), &part.into(), &why)
    };
    for label in domain.split('.') {
        for why in names::label_errors(label) {
            causes.push(wrong(domain, label, &why));
        }
    }
    if !domain.contains('.') {
        causes.push(
            signer.invalid("should be a domain with at least two segments separated by dots"),
        );
    }
    for label in path.split('.') {
        for why in names::subdomain_errors(label) {
            causes.push(wrong(path, label, &why));
        }
    }
    if signer.as_text() == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        causes.push(signer.invalid(why));
    }
}

/// A request is approved or denied, never both, and each for good.
fn check_conditions(conditions: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (mut approved, mut denied) = (false, false);
    let mut seen = BTreeSet::new();
    for condition in conditions.elements() {
        let (kind, status) = (condition.child("type"), condition.child("status"));
        let decides = matches!(kind.as_text(), "Approved" | "Denied" | "Failed");
        if kind.as_text().is_empty() {
            causes.push(kind.required(""));
        } else if decides {
            status.one_of(&["True"], causes);
        } else {
            status.one_of(&["False", "True", "Unknown"], causes);
        }
        approved |= kind.as_text() == "Approved";
        denied |= kind.as_text() == "Denied";
        if approved && denied && matches!(kind.as_text(), "Approved" | "Denied") {
            let why = "Approved and Denied conditions are mutually exclusive";
            let path = conditions.path();
            causes.push(field::invalid(path, kind.value, why));
        }
        if !seen.insert(kind.as_text()) {
            causes.push(kind.duplicate());
        }
    }
}

fn of_type<'a>(request: &'a Value, kind: &str) -> Vec<&'a Value> {
    let conditions = request["status"]["conditions"].as_array();
    let all = conditions.into_iter().flatten();
    all.filter(|condition| condition["type"] == kind).collect()
}

/// What a change of the status, or of the approval, may not do. Which of the two it is shows in
/// what it may add.
fn check_change(new: &Value, old: &Value, approves: bool, causes: &mut Vec<Cause>) {
    check_conditions(&At::root(new, "").then("status").then("conditions"), causes);
    let certificate = At::root(new, "").then("status").then("certificate");
    if !certificate.as_text().is_empty() && blocks(&certificate).is_empty() {
        causes.push(field::invalid_shown(
            certificate.path(),
            "\"<certificate data>\"",
            "must contain at least one CERTIFICATE PEM block",
        ));
    }
    for kind in ["Approved", "Denied", "Failed"] {
        let (now, before) = (of_type(new, kind).len(), of_type(old, kind).len());
        let may_add = match kind {
            "Failed" => !approves,
            _ => approves,
        };
        if now < before {
            let why = format!("updates may not remove a condition of type {kind:?}");
            causes.push(field::forbidden("status.conditions", &why));
        }
        if now > before && !may_add {
            let why = format!("updates may not add a condition of type {kind:?}");
            causes.push(field::forbidden("status.conditions", &why));
        }
    }
    let before = &old["status"]["certificate"];
    if before.as_str().is_some_and(|text| !text.is_empty()) && certificate.value != before {
        let why = "updates may not modify existing certificate content";
        causes.push(certificate.forbidden(why));
    }
}

pub(crate) fn check_status(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    check_change(new, old, false, causes);
}

pub(crate) fn check_approval(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    check_change(new, old, true, causes);
}
