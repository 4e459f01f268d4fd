//! The definition itself: what it may leave out, what is wrong with it, and what its status says.

use serde_json::{Value, json};

use super::CLEANUP_FINALIZER;
use super::schema::Schema;
use crate::object::{finalizers, set_meta};
use crate::status::{Cause, field};

/// Fills in what a CRD may leave out.
pub(crate) fn fill_defaults(crd: &mut Value) {
    let kind = crd["spec"]["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if let Some(names) = crd["spec"]["names"].as_object_mut() {
        names
            .entry("singular")
            .or_insert_with(|| kind.to_lowercase().into());
        names
            .entry("listKind")
            .or_insert_with(|| format!("{kind}List").into());
    }
    if let Some(spec) = crd["spec"].as_object_mut() {
        spec.entry("conversion")
            .or_insert_with(|| json!({"strategy": "None"}));
    }
}

/// What is wrong with a CRD. Thin: names, versions and the parts this server cannot honour.
pub(crate) fn validate(crd: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    for (path, value) in [
        ("spec.group", &spec["group"]),
        ("spec.scope", &spec["scope"]),
        ("spec.names.plural", &spec["names"]["plural"]),
        ("spec.names.kind", &spec["names"]["kind"]),
    ] {
        if text(value).is_empty() {
            causes.push(field::required(path, ""));
        }
    }
    let expected = format!("{plural}.{group}");
    if text(&crd["metadata"]["name"]) != expected {
        causes.push(field::invalid(
            "metadata.name",
            &crd["metadata"]["name"],
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let storage_versions = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count();
    if storage_versions != 1 {
        causes.push(field::invalid_shown(
            "spec.versions",
            &versions_shown(versions),
            "must have exactly one version marked as storage version",
        ));
    }
    // One schema for all versions is checked as the definition's own.
    let schema_of = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let shared = versions
        .windows(2)
        .all(|pair| schema_of(&pair[0]) == schema_of(&pair[1]));
    for (index, version) in versions.iter().enumerate() {
        let raw = &version["schema"]["openAPIV3Schema"];
        let own = format!("spec.versions[{index}].schema.openAPIV3Schema");
        if !raw.is_object() {
            causes.push(field::required(own, ""));
            continue;
        }
        let path = match (shared, index) {
            (true, 0) => "spec.validation.openAPIV3Schema".to_owned(),
            (true, _) => continue,
            (false, _) => own,
        };
        match serde_json::from_value::<Schema>(raw.clone()) {
            Err(error) => causes.push(field::invalid(path, raw, &error.to_string())),
            Ok(schema) => check_structure(&schema, &path, &mut causes),
        }
    }
    if storage_versions == 0 {
        let why = "must have at least one stored version";
        causes.push(field::invalid("status.storedVersions", &Value::Null, why));
    }
    causes
}

/// Versions as Go shows them: what all of them share is not said of each.
fn versions_shown(versions: &[Value]) -> String {
    let flag = |version: &Value, name: &str| version[name] == true;
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                version["name"],
                flag(version, "served"),
                flag(version, "storage"),
                flag(version, "deprecated"),
                version["deprecationWarning"],
            )
        })
        .collect();
    format!("[{}]", shown.join(","))
}

fn check_structure(schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    if schema.ty != "object" {
        causes.push(field::invalid(
            format!("{path}.type"),
            &schema.ty.as_str().into(),
            "must be object at the root",
        ));
    }
    schema.visit(path, &mut |path, schema| {
        if schema.ty.is_empty() && !schema.int_or_string && !schema.preserve_unknown {
            causes.push(field::required(format!("{path}.type"), "must not be empty for specified object fields"));
        }
        if !schema.rules.is_empty() {
            causes.push(field::forbidden(
                format!("{path}.x-kubernetes-validations"),
                "CEL rules are not run by this version of windlass, and are refused rather than ignored",
            ));
        }
        if let Some(pattern) = &schema.pattern
            && let Err(error) = regex::Regex::new(pattern)
        {
            causes.push(field::invalid(format!("{path}.pattern"), &pattern.as_str().into(), &format!("must be a valid regular expression, but isn't: {error}")));
        }
    });
}

/// The status of an accepted CRD, with the conditions clients wait for.
pub(crate) fn established_status(crd: &Value, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    let storage = crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true);
    let mut stored: Vec<Value> = crd["status"]["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if let Some(name) = storage.map(|version| version["name"].clone())
        && !stored.contains(&name)
    {
        stored.push(name);
    }
    json!({
        "acceptedNames": crd["spec"]["names"],
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    })
}

/// Marks a CRD that is going away: its objects are deleted before it is.
pub(crate) fn mark_terminating(crd: &mut Value, now: &str) {
    let mut kept: Vec<String> = finalizers(crd).into_iter().map(str::to_owned).collect();
    if kept.iter().all(|known| known != CLEANUP_FINALIZER) {
        kept.push(CLEANUP_FINALIZER.to_owned());
    }
    set_meta(crd, "finalizers", Some(json!(kept)));
    set_condition(
        crd,
        json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }),
    );
}

fn set_condition(crd: &mut Value, condition: Value) {
    let conditions = &mut crd["status"]["conditions"];
    match conditions.as_array_mut() {
        None => *conditions = json!([condition]),
        Some(conditions) => match conditions
            .iter_mut()
            .find(|known| known["type"] == condition["type"])
        {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cel_rules_are_refused_rather_than_ignored() {
        let crd = json!({
            "metadata": {"name": "ws.x.io"},
            "spec": {"group": "x.io", "scope": "Namespaced", "names": {"plural": "ws", "kind": "W"}, "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}},
            }]},
        });
        let causes = validate(&crd);
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(
            causes[0].field,
            "spec.validation.openAPIV3Schema.x-kubernetes-validations"
        );
    }
}
