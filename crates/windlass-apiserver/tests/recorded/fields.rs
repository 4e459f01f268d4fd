//! Which fields of the built-in kinds the recorded inputs say, counted.
//!
//! The table of facts knows the types that an object of each kind is made of. Every field of every
//! such type must be in an input that the real server has accepted (so that it was read back, and
//! ours reads it back the same), or stand in [`LEFT_OUT`] with the reason. What only the server
//! writes (a status, and most of the metadata) is not asked for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::kinds;

/// Fields that no accepted input can have, by the end of the type's name, and why; no fields are
/// all of them.
const LEFT_OUT: &[(&str, &[&str], &str)] = &[
    (
        "SelfSubjectRulesReview",
        &["spec"],
        "the rules that an accepted one is answered with come in no order",
    ),
    ("SelfSubjectRulesReviewSpec", &[], "the same"),
    (
        "PodSpec",
        &["ephemeralContainers"],
        "refused in a new pod; one that is there gets them in kinds_full",
    ),
    ("EphemeralContainer", &[], "the same"),
    (
        "PersistentVolumeClaimStatus",
        &[
            "accessModes",
            "allocatedResourceStatuses",
            "allocatedResources",
            "capacity",
            "conditions",
            "currentVolumeAttributesClassName",
            "modifyVolumeStatus",
        ],
        "in the templates of a StatefulSet; it is the server's",
    ),
    ("PersistentVolumeClaimCondition", &[], "the same"),
    ("ModifyVolumeStatus", &[], "the same"),
    (
        "events.v1.Event",
        &[
            "deprecatedCount",
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
            "deprecatedSource",
        ],
        "refused in a new event of that version, as kinds_full shows",
    ),
    (
        "PriorityLevelConfigurationSpec",
        &["exempt"],
        "only the level that is there from the start may be exempt, as kinds_full shows",
    ),
    ("ExemptPriorityLevelConfiguration", &[], "the same"),
    (
        "DeviceAttribute",
        &["bools", "ints", "strings", "versions"],
        "dropped, the feature being off, and refused then, as kinds_full shows",
    ),
    (
        "JSONSchemaProps",
        &[
            "$ref",
            "$schema",
            "additionalItems",
            "definitions",
            "dependencies",
            "id",
            "patternProperties",
            "uniqueItems",
        ],
        "not allowed in the schema of a definition",
    ),
    (
        "meta.v1.ObjectMeta",
        &[
            "creationTimestamp",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "generateName",
            "generation",
            "managedFields",
            "namespace",
            "ownerReferences",
            "resourceVersion",
            "selfLink",
            "uid",
        ],
        "in a template; objects themselves have them in the cases about rules",
    ),
    ("meta.v1.ManagedFieldsEntry", &[], "the same"),
    ("meta.v1.OwnerReference", &[], "the same"),
];

#[derive(Deserialize)]
struct Facts {
    resources: Vec<Resource>,
    types: BTreeMap<String, Object>,
}

#[derive(Deserialize)]
struct Resource {
    group: String,
    plural: String,
    verbs: Vec<String>,
    r#type: String,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    fields: BTreeMap<String, Field>,
}

/// As far as it leads to other types.
#[derive(Deserialize)]
struct Field {
    r#ref: Option<String>,
    items: Option<Box<Field>>,
    values: Option<Box<Field>>,
}

/// What has been reached and said, by type.
#[derive(Default)]
struct Said<'a> {
    types: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Said<'a> {
    /// Looks at values of a type.
    fn object(&mut self, facts: &'a Facts, name: &'a str, values: &[&Value], is_root: bool) {
        let known = self.types.contains_key(name);
        let Some(object) = facts.types.get(name) else {
            return;
        };
        self.types.entry(name).or_default();
        // Types contain themselves (schemas of definitions), so what nobody says is not followed twice.
        if known && values.is_empty() {
            return;
        }
        for (field, ty) in &object.fields {
            if is_root && matches!(field.as_str(), "metadata" | "status") {
                continue;
            }
            let of_field: Vec<&Value> = values
                .iter()
                .filter_map(|value| value.get(field))
                .filter(|value| !value.is_null())
                .collect();
            if !of_field.is_empty() {
                self.types.entry(name).or_default().insert(field);
            }
            self.field(facts, ty, &of_field);
        }
    }

    fn field(&mut self, facts: &'a Facts, ty: &'a Field, values: &[&Value]) {
        if let Some(name) = &ty.r#ref {
            self.object(facts, name, values, false);
        }
        if let Some(items) = &ty.items {
            let lists = values.iter().filter_map(|value| value.as_array());
            let all: Vec<&Value> = lists.flatten().collect();
            self.field(facts, items, &all);
        }
        if let Some(ty) = &ty.values {
            let objects = values.iter().filter_map(|value| value.as_object());
            let all: Vec<&Value> = objects.flat_map(serde_json::Map::values).collect();
            self.field(facts, ty, &all);
        }
    }
}

/// Whether, and by which entry, a field is left out.
fn left_out(name: &str, field: &str) -> Option<usize> {
    LEFT_OUT.iter().position(|(ty, fields, _)| {
        name.ends_with(&format!(".{ty}")) && (fields.is_empty() || fields.contains(&field))
    })
}

#[test]
fn every_field_of_the_built_in_kinds_is_in_a_recorded_input() {
    let facts: Facts = serde_json::from_str(include_str!("../../facts/kinds.json"))
        .expect("the table of facts can be read");
    let recorded = kinds::recorded();
    let mut said = Said::default();
    for resource in &facts.resources {
        if !resource.verbs.iter().any(|verb| verb == "create") {
            continue;
        }
        let kind = format!("{}/{}", resource.group, resource.plural);
        let inputs = recorded
            .get(&kind)
            .map(|inputs| inputs.accepted.as_slice())
            .unwrap_or_default();
        let values: Vec<&Value> = inputs.iter().collect();
        said.object(&facts, &resource.r#type, &values, true);
    }
    let (mut fields, mut missing) = (0, Vec::new());
    let mut used = BTreeSet::new();
    let mut needless = Vec::new();
    for (name, said) in &said.types {
        for field in facts.types[*name].fields.keys() {
            let of_all = ["apiVersion", "kind", "metadata", "status"];
            if of_all.contains(&field.as_str()) {
                continue;
            }
            fields += 1;
            match (said.contains(field.as_str()), left_out(name, field)) {
                (true, Some(_)) => needless.push(format!("{name} {field}")),
                (true, None) => {}
                (false, Some(entry)) => drop(used.insert(entry)),
                (false, None) => missing.push(format!("{name} {field}")),
            }
        }
    }
    println!(
        "{fields} fields of {} types, {} reasons to leave some out",
        said.types.len(),
        LEFT_OUT.len()
    );
    assert!(
        missing.is_empty(),
        "no accepted input has these fields:\n{}",
        missing.join("\n")
    );
    let unused: Vec<_> = (0..LEFT_OUT.len())
        .filter(|entry| !used.contains(entry))
        .map(|entry| LEFT_OUT[entry].0)
        .collect();
    assert!(
        needless.is_empty() && unused.is_empty(),
        "left out for nothing: {needless:?}, {unused:?}"
    );
}
