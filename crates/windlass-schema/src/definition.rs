//! The definition itself: what it may leave out, and what is wrong with it.
//!
//! Kubernetes keeps what all versions say alike once, at the top of the spec, and speaks of it
//! there: `spec.validation`, `spec.subresources`, `spec.additionalPrinterColumns`,
//! `spec.selectableFields`. So do the paths of these causes.

use serde_json::{Value, json};

use super::approval::check_approval;
use super::object::ReadMetadata;
use super::path::{child, index};
use super::schema::Schema;
use super::schema_check;
use super::version::{check_columns, check_scale, check_selectable};
use windlass_apimachinery::field::{self, Cause};
use windlass_apimachinery::names;
use windlass_apimachinery::steps::step;

/// How many bytes the paths of a schema's parts may have together; those of the largest known
/// definitions have some hundred thousand.
const MOST_PATHS: usize = 16 * 1024 * 1024;
/// What stands between the names in a path.
const PART: usize = 16;

/// Fills in what a CRD may leave out.
pub fn fill_defaults(crd: &mut Value) {
    let kind = text(&crd["spec"]["names"]["kind"]).to_owned();
    if let Some(names) = crd["spec"]["names"].as_object_mut()
        && !kind.is_empty()
    {
        let is_missing = |value: Option<&Value>| value.is_none_or(|value| text(value).is_empty());
        if is_missing(names.get("singular")) {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if is_missing(names.get("listKind")) {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    if let Some(spec) = crd["spec"].as_object_mut() {
        spec.entry("conversion")
            .or_insert_with(|| json!({"strategy": "None"}));
        if let Some(service) = spec
            .get_mut("conversion")
            .and_then(|conversion| conversion.pointer_mut("/webhook/clientConfig/service"))
            .and_then(Value::as_object_mut)
        {
            service.entry("port").or_insert_with(|| 443.into());
        }
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.remove("preserveUnknownFields");
        }
    }
    let stored = crd["status"]["storedVersions"].as_array();
    if crd["status"].is_object()
        && stored.is_none_or(Vec::is_empty)
        && let Some(name) = storage_version(&crd["spec"])
    {
        crd["status"]["storedVersions"] = json!([name]);
    }
}

/// The version that objects are stored in.
fn storage_version(spec: &Value) -> Option<Value> {
    let stored = versions(spec)
        .iter()
        .find(|version| version["storage"] == true)?;
    Some(stored["name"].clone())
}

/// What is wrong with a new definition, or with one that changes `old`. `read` reads the metadata
/// of objects in defaults.
pub fn validate(crd: &Value, old: Option<&Value>, read: ReadMetadata) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &crd["spec"];
    if old.is_none() {
        let name = &crd["metadata"]["name"];
        let wanted = format!(
            "{}.{}",
            text(&spec["names"]["plural"]),
            text(&spec["group"])
        );
        if text(name) != wanted {
            let why = "must be spec.names.plural+\".\"+spec.group";
            causes.push(field::invalid("metadata.name", name, why));
        }
    }
    check_spec(spec, old.map(|old| &old["spec"]), read, &mut causes);
    if let Some(old) = old {
        let mut immutable = |path: &str, new: &Value, old: &Value| {
            if new != old {
                causes.push(field::invalid(path, new, "field is immutable"));
            }
        };
        let before = &old["spec"];
        if has_condition(old, "Established") {
            immutable("spec.scope", &spec["scope"], &before["scope"]);
            let kind = |spec: &Value| spec["names"]["kind"].clone();
            immutable("spec.names.kind", &kind(spec), &kind(before));
        }
        immutable("spec.group", &spec["group"], &before["group"]);
        let plural = |spec: &Value| spec["names"]["plural"].clone();
        immutable("spec.names.plural", &plural(spec), &plural(before));
    }
    check_names(
        &crd["status"]["acceptedNames"],
        "status.acceptedNames",
        &mut causes,
    );
    check_stored_versions(crd, &mut causes);
    check_approval(crd, old, &mut causes);
    if spec["preserveUnknownFields"] == true
        && old.is_none_or(|old| old["spec"]["preserveUnknownFields"] != true)
    {
        causes.push(field::invalid(
            "spec.preserveUnknownFields",
            &true.into(),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    causes
}

/// Formats of a definition that mean nothing, which its writer is warned about.
pub fn unknown_formats(crd: &Value) -> Vec<String> {
    fn find(schema: &Schema, found: &mut Vec<String>) {
        if !schema.format.is_empty() && !super::format::is_known(&schema.format, &schema.ty) {
            found.push(schema.format.clone());
        }
        for child in schema.children() {
            find(child, found);
        }
    }
    let mut found = Vec::new();
    for raw in shared_or_each(&crd["spec"], "schema") {
        if let Ok(schema) = serde_json::from_value(raw["openAPIV3Schema"].clone()) {
            find(&schema, &mut found);
        }
    }
    found
}

/// What the versions say of something: once, if they all say the same.
fn shared_or_each<'a>(spec: &'a Value, part: &str) -> Vec<&'a Value> {
    let versions = versions(spec);
    let said: Vec<&Value> = versions.iter().map(|version| &version[part]).collect();
    match said.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => vec![first],
        _ => said,
    }
}

fn versions(spec: &Value) -> &[Value] {
    spec["versions"].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a condition of that type is true.
pub fn has_condition(crd: &Value, kind: &str) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn check_spec(spec: &Value, old: Option<&Value>, read: ReadMetadata, causes: &mut Vec<Cause>) {
    let group = text(&spec["group"]);
    if group.is_empty() {
        causes.push(field::required("spec.group", ""));
    } else if let errors = names::subdomain_errors(group)
        && !errors.is_empty()
    {
        causes.push(field::invalid(
            "spec.group",
            &spec["group"],
            &errors.join(","),
        ));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        causes.push(field::invalid("spec.group", &spec["group"], why));
    }
    one_of(
        "spec.scope",
        &spec["scope"],
        &["Cluster", "Namespaced"],
        causes,
    );
    let versions = versions(spec);
    let is_shared = |part: &str| {
        versions
            .windows(2)
            .all(|pair| pair[0][part] == pair[1][part])
    };
    for (place, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let at = child(&index("spec.versions", place), "schema.openAPIV3Schema");
            causes.push(field::required(at, ""));
        }
    }
    if spec["preserveUnknownFields"] == true && has_defaults(spec) {
        causes.push(field::invalid(
            "spec.preserveUnknownFields",
            &true.into(),
            "must be false in order to use defaults in the schema",
        ));
    }
    let suppress_cost = |version: &Value| {
        old.is_some_and(|old| {
            let before = self::versions(old)
                .iter()
                .find(|before| before["name"] == version["name"]);
            before.is_some_and(|before| before["schema"] == version["schema"])
        })
    };
    let status_of = |version: &Value| version["subresources"]["status"].is_object();
    for (place, version) in versions.iter().enumerate() {
        let at = index("spec.versions", place);
        let name = &version["name"];
        label_1035(&child(&at, "name"), name, "", causes);
        check_deprecation(version, &at, causes);
        if !is_shared("schema") {
            let at = child(&at, "schema");
            check_schema(
                version,
                read,
                status_of(version),
                suppress_cost(version),
                &at,
                causes,
            );
        }
        if !is_shared("subresources") {
            check_scale(version, &child(&at, "subresources"), causes);
        }
        if !is_shared("additionalPrinterColumns") {
            check_columns(version, &child(&at, "additionalPrinterColumns"), causes);
        }
        if !is_shared("selectableFields") {
            check_selectable(version, &child(&at, "selectableFields"), causes);
        }
    }
    check_version_names(versions, is_shared("schema"), causes);
    if let Some(first) = versions.first() {
        label_1035("spec.version", &first["name"], "", causes);
    }
    for part in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"][part]).is_empty() {
            causes.push(field::required(child("spec.names", part), ""));
        }
    }
    check_names(&spec["names"], "spec.names", causes);
    if let Some(first) = versions.first() {
        if is_shared("schema") {
            let has_status = versions.iter().any(status_of);
            let at = "spec.validation";
            check_schema(first, read, has_status, suppress_cost(first), at, causes);
        }
        if is_shared("subresources") {
            check_scale(first, "spec.subresources", causes);
        }
        if is_shared("additionalPrinterColumns") {
            check_columns(first, "spec.additionalPrinterColumns", causes);
        }
        if is_shared("selectableFields") {
            check_selectable(first, "spec.selectableFields", causes);
        }
    }
    super::conversion::check(&spec["conversion"], causes);
}

fn has_defaults(spec: &Value) -> bool {
    versions(spec).iter().any(|version| {
        let raw = version["schema"]["openAPIV3Schema"].clone();
        serde_json::from_value::<Schema>(raw)
            .is_ok_and(|schema| schema.any(&|schema| schema.default.is_some()))
    })
}

fn check_schema(
    version: &Value,
    read: ReadMetadata,
    has_status: bool,
    suppress_cost: bool,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let raw = &version["schema"]["openAPIV3Schema"];
    if !raw.is_object() {
        return;
    }
    let at = child(at, "openAPIV3Schema");
    match serde_json::from_value::<Schema>(raw.clone()) {
        Err(error) => causes.push(field::invalid(at, raw, &error.to_string())),
        Ok(schema) if length_of_paths(&schema, at.len()) > MOST_PATHS => {
            let why = format!("the paths of its fields have more than {MOST_PATHS} bytes together");
            causes.push(field::forbidden(at, &why));
        }
        Ok(schema) => schema_check::check(&schema, read, has_status, suppress_cost, &at, causes),
    }
}

/// How long the paths of all parts of a schema are together, more or less: each is written several
/// times while the schema is checked. A name is as long as a client makes it, and there may be as
/// many below it.
fn length_of_paths(schema: &Schema, own: usize) -> usize {
    step();
    let named = [
        &schema.properties,
        &schema.pattern_properties,
        &schema.definitions,
    ];
    let below = |part: &Schema, name: usize| length_of_paths(part, own + name + PART);
    let named = named.into_iter().flatten();
    let all_named = named.map(|(name, part)| below(part, name.len()));
    let all_named: usize = all_named.fold(0, usize::saturating_add);
    schema
        .unnamed()
        .map(|part| below(part, 0))
        .fold(own.saturating_add(all_named), usize::saturating_add)
}

fn one_of(at: &str, value: &Value, allowed: &[&str], causes: &mut Vec<Cause>) {
    if text(value).is_empty() {
        causes.push(field::required(at, ""));
    } else if !allowed.contains(&text(value)) {
        let allowed: Vec<String> = allowed.iter().map(|one| format!("\"{one}\"")).collect();
        causes.push(field::not_supported(at, value, &allowed));
    }
}

fn label_1035(at: &str, value: &Value, prefix: &str, causes: &mut Vec<Cause>) {
    let lower = text(value).to_lowercase();
    let checked = if prefix.is_empty() {
        text(value)
    } else {
        &lower
    };
    let errors = names::label_1035_errors(checked);
    if !errors.is_empty() {
        let why = format!("{prefix}{}", errors.join(","));
        causes.push(field::invalid(at, value, &why));
    }
}

fn check_names(names: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mixed = "may have mixed case, but should otherwise match: ";
    for (part, prefix) in [
        ("plural", ""),
        ("singular", ""),
        ("kind", mixed),
        ("listKind", mixed),
    ] {
        if !text(&names[part]).is_empty() {
            label_1035(&child(at, part), &names[part], prefix, causes);
        }
    }
    let list = |part: &str, causes: &mut Vec<Cause>| {
        let listed = names[part].as_array().into_iter().flatten();
        for (place, name) in listed.enumerate() {
            label_1035(&index(&child(at, part), place), name, "", causes);
        }
    };
    list("shortNames", causes);
    if !text(&names["kind"]).is_empty() && names["kind"] == names["listKind"] {
        let why = "kind and listKind may not be the same";
        causes.push(field::invalid(
            child(at, "listKind"),
            &names["listKind"],
            why,
        ));
    }
    list("categories", causes);
}

fn check_deprecation(version: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(warning) = version["deprecationWarning"].as_str() else {
        return;
    };
    let mut wrong = |why: String| {
        let at = child(at, "deprecationWarning");
        causes.push(field::invalid(at, &warning.into(), &why));
    };
    if version["deprecated"] != true {
        wrong("can only be set for deprecated versions".into());
        return;
    }
    if warning.len() > 256 {
        wrong("must be <= 256 characters long".into());
    }
    if warning.is_empty() {
        wrong("must not be an empty string".into());
    }
    if let Some((at, _)) = warning
        .char_indices()
        .find(|(_, c)| c.is_control() || (c.is_whitespace() && *c != ' '))
    {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

fn check_version_names(versions: &[Value], schema_shared: bool, causes: &mut Vec<Cause>) {
    let mut names: Vec<&str> = versions.iter().map(|v| text(&v["name"])).collect();
    names.sort_unstable();
    names.dedup();
    let mut wrong = |why: &str| {
        let shown = super::shown::versions(versions, schema_shared);
        causes.push(field::invalid_shown("spec.versions", &shown, why));
    };
    if names.len() != versions.len() {
        wrong("must contain unique version names");
    }
    if versions.iter().filter(|v| v["storage"] == true).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
}

fn check_stored_versions(crd: &Value, causes: &mut Vec<Cause>) {
    let at = "status.storedVersions";
    let stored = crd["status"]["storedVersions"].as_array();
    let stored = stored.map_or(&[][..], Vec::as_slice);
    if stored.is_empty() {
        let why = "must have at least one stored version";
        causes.push(field::invalid(at, &Value::Null, why));
        return;
    }
    let versions = versions(&crd["spec"]);
    for version in versions.iter().filter(|version| version["storage"] == true) {
        if !stored.contains(&version["name"]) {
            let why = format!("must have the storage version {}", text(&version["name"]));
            causes.push(field::invalid(at, &json!(stored), &why));
        }
    }
    for (place, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *name) {
            let name = text(name);
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            causes.push(field::invalid(index(at, place), &name.into(), &why));
        }
    }
}
