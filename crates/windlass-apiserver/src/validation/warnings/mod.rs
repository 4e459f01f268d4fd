//! What a client is told about an object that is good, but not as it should be.

pub(crate) mod pod;

use base64::Engine as _;
use serde_json::Value;
use x509_parser::pem::Pem;

use crate::object::meta;
use crate::quantity::Quantity;

/// Volumes that no longer work: where, since when it is discouraged, and since when it is gone.
const GONE_VOLUMES: &[(&str, &str, &str, &str)] = &[
    ("cephfs", "cephfs", "v1.28", "v1.31+"),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "v1.11",
        "v1.16+",
    ),
    ("scaleIO", "scaleIO", "v1.16", "v1.22+"),
    ("storageos", "storageOS", "v1.22", "v1.25+"),
    ("glusterfs", "glusterfs", "v1.25", "v1.26+"),
    ("rbd", "rbd", "v1.28", "v1.31+"),
];
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Whether a key pair is one at all; whether it fits is not looked at.
pub(crate) fn secret(secret: &Value) -> Vec<String> {
    if secret["type"] != "kubernetes.io/tls" {
        return Vec::new();
    }
    let is_empty = |key: &str| {
        let text = secret["data"][key].as_str().unwrap_or_default();
        let engine = base64::engine::general_purpose::STANDARD;
        let bytes = engine.decode(text).unwrap_or_default();
        !Pem::iter_from_buffer(&bytes).any(|block| block.is_ok())
    };
    for (key, what) in [("tls.crt", "certificate"), ("tls.key", "key")] {
        if is_empty(key) {
            return vec![format!("tls: failed to find any PEM data in {what} input")];
        }
    }
    Vec::new()
}

/// What is discouraged of a node.
pub(crate) fn node(node: &Value) -> Vec<String> {
    match node["spec"]["externalID"].as_str() {
        None | Some("") => Vec::new(),
        Some(_) => vec![
            "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
        ],
    }
}

/// What is discouraged of a volume.
pub(crate) fn volume(volume: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = &volume["spec"];
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    for (field, path, since, gone) in GONE_VOLUMES {
        if !spec[*field].is_null() {
            warnings.push(format!(
                "spec.{path}: deprecated in {since}, non-functional in {gone}"
            ));
        }
    }
    warnings
}

/// What is discouraged of a claim.
pub(crate) fn claim(claim: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if !claim["metadata"]["annotations"][CLASS_ANNOTATION].is_null() {
        warnings.push(format!(
            "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    for part in ["requests", "limits"] {
        let text = claim["spec"]["resources"][part]["storage"].as_str();
        let amount = text.and_then(Quantity::parse);
        if let Some(amount) = amount.filter(|amount| !amount.is_whole()) {
            warnings.push(format!(
                "spec.resources.{part}[storage]: fractional byte value \"{amount}\" is invalid, must be an integer"
            ));
        }
    }
    warnings
}

/// What is discouraged of a slice.
pub(crate) fn slice(slice: &Value) -> Vec<String> {
    if slice["addressType"] == "FQDN" {
        return vec!["spec.addressType: FQDN endpoints are deprecated".to_owned()];
    }
    Vec::new()
}

/// Told when it is created; later it is known.
pub(crate) fn ingress(ingress: &Value) -> Vec<String> {
    let annotated = !ingress["metadata"]["annotations"][INGRESS_ANNOTATION].is_null();
    let is_new = ingress["metadata"]["generation"] == 1 && !meta(ingress, "name").is_empty();
    if annotated && is_new {
        return vec![format!(
            "annotation \"{INGRESS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
        )];
    }
    Vec::new()
}

/// What is discouraged of a driver.
pub(crate) fn driver(driver: &Value) -> Vec<String> {
    let spec = &driver["spec"];
    let asks = spec["tokenRequests"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    if asks && spec["serviceAccountTokenInSecrets"].is_null() {
        return vec!["spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".to_owned()];
    }
    Vec::new()
}
