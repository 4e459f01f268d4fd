//! The class that a claim or an Ingress gets when it names none, and what a class allows.

use serde_json::Value;

use crate::object::meta;
use crate::quantity::Quantity;
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};
use crate::store::{Key, Store, TableName};

const STORAGE_DEFAULT: &[&str] = &[
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const INGRESS_DEFAULT: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];
const STORAGE_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_ANNOTATION: &str = "kubernetes.io/ingress.class";

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

/// The newest class that is marked as the default; of two that are equally new, the first by name.
fn default_of(store: &Store, table: &TableName, marks: &[&str]) -> Option<String> {
    let classes = store.list(table, None, None, None).ok()?.objects;
    let marked = classes.iter().map(|class| class.value()).filter(|class| {
        let is_marked = |mark: &&str| annotation(class, mark) == Some("true");
        marks.iter().any(is_marked)
    });
    // They come by name, and the first of the greatest is wanted.
    let mut best: Option<Value> = None;
    for class in marked {
        let newer =
            |best: &Value| meta(&class, "creationTimestamp") > meta(best, "creationTimestamp");
        if best.as_ref().is_none_or(newer) {
            best = Some(class);
        }
    }
    best.map(|class| meta(&class, "name").to_owned())
}

/// A claim without a class gets the default one.
pub(crate) fn default_storage(store: &Store, claim: &mut Value) {
    let chosen = !claim["spec"]["storageClassName"].is_null()
        || annotation(claim, STORAGE_ANNOTATION).is_some();
    if chosen || !claim["spec"].is_object() {
        return;
    }
    let table = TableName::new("storage.k8s.io", "storageclasses");
    if let Some(name) = default_of(store, &table, STORAGE_DEFAULT) {
        claim["spec"]["storageClassName"] = name.into();
    }
}

/// An Ingress without a class gets the default one.
pub(crate) fn default_ingress(store: &Store, ingress: &mut Value) {
    let chosen = !ingress["spec"]["ingressClassName"].is_null()
        || annotation(ingress, INGRESS_ANNOTATION).is_some();
    if chosen || !ingress["spec"].is_object() {
        return;
    }
    let table = TableName::new("networking.k8s.io", "ingressclasses");
    if let Some(name) = default_of(store, &table, INGRESS_DEFAULT) {
        ingress["spec"]["ingressClassName"] = name.into();
    }
}

/// A claim grows only where its class lets it.
pub(super) fn check_growth(
    store: &Store,
    resource: &Resource,
    new: &Value,
    old: &Value,
) -> Result<()> {
    let size = |claim: &Value| {
        let asked = claim["spec"]["resources"]["requests"]["storage"].as_str();
        asked.and_then(Quantity::parse).unwrap_or(Quantity::ZERO)
    };
    if size(new) <= size(old) {
        return Ok(());
    }
    let class = annotation(new, STORAGE_ANNOTATION)
        .or_else(|| new["spec"]["storageClassName"].as_str())
        .unwrap_or_default();
    let table = TableName::new("storage.k8s.io", "storageclasses");
    let found = store.get(&table, &Key::new("", class));
    let grows = found.is_some_and(|class| class.value()["allowVolumeExpansion"] == true);
    let why = if old["status"]["phase"] != "Bound" {
        "Only bound persistent volume claims can be expanded"
    } else if grows {
        return Ok(());
    } else {
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
    };
    Err(ApiError::forbidden(
        resource.subject(),
        meta(new, "name"),
        why,
    ))
}
