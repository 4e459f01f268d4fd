//! `RuntimeClass`es: what a pod costs on top, and where it can run, because of how it is run.

use serde_json::{Value, json};

use super::{refused, shown_name};
use crate::quantity::Quantity;
use crate::registry::resource::Resource;
use crate::status::Result;
use crate::store::{Key, Store, TableName};

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Gives a new pod what its class asks for.
pub(super) fn admit(store: &Store, resource: &Resource, pod: &mut Value) -> Result<()> {
    let name = pod["spec"]["runtimeClassName"].as_str().unwrap_or_default();
    let no = |why: &str| refused(resource, shown_name(pod), why);
    let given = pod["spec"]
        .get("overhead")
        .filter(|overhead| !overhead.is_null());
    if name.is_empty() {
        return match given {
            Some(_) => Err(no(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            )),
            None => Ok(()),
        };
    }
    let table = TableName::new("node.k8s.io", "runtimeclasses");
    let Some(class) = store.get(&table, &Key::new("", name)) else {
        return Err(no(&format!(
            "pod rejected: RuntimeClass \"{name}\" not found"
        )));
    };
    let class = class.value();
    match (class.get("overhead"), given) {
        (None, Some(_)) => {
            return Err(no(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            ));
        }
        (Some(overhead), Some(given)) if !same(&overhead["podFixed"], given) => {
            return Err(no(MISMATCH));
        }
        _ => {}
    }
    let places = class["scheduling"]["nodeSelector"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (key, wanted) in &places {
        let own = &pod["spec"]["nodeSelector"][key];
        if let (Some(own), Some(wanted)) = (own.as_str(), wanted.as_str())
            && own != wanted
        {
            return Err(no(&format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {own}"
            )));
        }
    }
    let spec = &mut pod["spec"];
    if let Some(fixed) = class["overhead"].get("podFixed") {
        spec["overhead"] = fixed.clone();
    }
    if !places.is_empty() {
        if !spec["nodeSelector"].is_object() {
            spec["nodeSelector"] = json!({});
        }
        for (key, value) in places {
            spec["nodeSelector"][key] = value;
        }
    }
    tolerate(spec, &class);
    Ok(())
}

/// Tolerations that are not there already.
fn tolerate(spec: &mut Value, class: &Value) {
    for toleration in class["scheduling"]["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if !spec["tolerations"].is_array() {
            spec["tolerations"] = json!([]);
        }
        if let Some(own) = spec["tolerations"].as_array_mut()
            && !own.contains(toleration)
        {
            own.push(toleration.clone());
        }
    }
}

/// Whether two lists of resources are the same amounts.
fn same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return false;
    };
    let amount = |value: &Value| value.as_str().and_then(Quantity::parse);
    one.len() == other.len()
        && one.iter().all(|(name, value)| {
            other
                .get(name)
                .is_some_and(|found| amount(found) == amount(value))
        })
}
