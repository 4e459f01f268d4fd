//! Priorities: a pod names a class, or gets the cluster's default; the number follows from it.

use serde_json::Value;

use super::{refused, shown_name};
use crate::kinds::scheduling::priority_class::SYSTEM_PRIORITIES;
use crate::object::meta;
use crate::registry::resource::Resource;
use crate::status::Result;
use crate::store::{Key, Store, TableName};

fn table() -> TableName {
    TableName::new("scheduling.k8s.io", "priorityclasses")
}

/// The class of pods that name none: of several the lowest.
fn default_class(store: &Store) -> Option<Value> {
    let classes = store.list(&table(), None, None, None).ok()?.objects;
    classes
        .iter()
        .map(|stored| stored.value())
        .filter(|class| class["globalDefault"] == true)
        .min_by_key(|class| class["value"].as_i64())
}

/// Gives a new pod the priority and the policy of its class.
pub(super) fn admit(store: &Store, resource: &Resource, pod: &mut Value) -> Result<()> {
    let name = pod["spec"]["priorityClassName"]
        .as_str()
        .unwrap_or_default();
    let class = if name.is_empty() {
        default_class(store)
    } else {
        let Some(found) = store.get(&table(), &Key::new("", name)) else {
            let why = format!("no PriorityClass with name {name} was found");
            return Err(refused(resource, shown_name(pod), &why));
        };
        Some(found.value())
    };
    let (priority, policy) = match &class {
        None => (0, Value::from("PreemptLowerPriority")),
        Some(class) => (
            class["value"].as_i64().unwrap_or_default(),
            class["preemptionPolicy"].clone(),
        ),
    };
    let spec = &pod["spec"];
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(refused(resource, shown_name(pod), &why));
    }
    if let (Some(given), Some(wanted)) = (spec["preemptionPolicy"].as_str(), policy.as_str())
        && given != wanted
    {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {wanted} from the given PriorityClass name"
        );
        return Err(refused(resource, shown_name(pod), &why));
    }
    if let Some(spec) = pod["spec"].as_object_mut() {
        if let Some(class) = &class {
            spec.insert("priorityClassName".into(), meta(class, "name").into());
        }
        spec.insert("priority".into(), priority.into());
        if policy.is_string() {
            spec.insert("preemptionPolicy".into(), policy);
        }
    }
    Ok(())
}

/// An update that leaves them out keeps them.
pub(super) fn keep(new: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let (None, Some(kept)) = (new["spec"].get(field), old["spec"].get(field)) {
            new["spec"][field] = kept.clone();
        }
    }
}

/// There is one default at most.
pub(super) fn check_default(
    store: &Store,
    resource: &Resource,
    class: &Value,
    is_new: bool,
) -> Result<()> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    match default_class(store) {
        Some(other) if is_new || meta(&other, "name") != meta(class, "name") => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                meta(&other, "name")
            );
            Err(refused(resource, shown_name(class), &why))
        }
        _ => Ok(()),
    }
}

/// The classes every cluster has stay.
pub(crate) fn check_delete(resource: &Resource, name: &str) -> Result<()> {
    if SYSTEM_PRIORITIES.iter().any(|(known, _)| *known == name) {
        let why = "this is a system priority class and cannot be deleted";
        return Err(refused(resource, name, why));
    }
    Ok(())
}
