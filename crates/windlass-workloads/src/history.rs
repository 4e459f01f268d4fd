//! ControllerRevisions: what the template of a StatefulSet or DaemonSet was before.
//!
//! A revision holds a patch that puts its template back, so that `kubectl rollout undo` can send
//! it as it is. Its name ends in a hash of that patch; two patches with one hash are told apart by
//! a count of collisions that goes into the next hash. The newest revision has the highest number:
//! going back to an older template gives the old revision a new number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Map, Value, json};

/// The label of a revision that carries the hash in its name.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";
/// The letters of an encoded hash: none that spell words or look alike.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest beginning of a revision's name.
const PREFIX: usize = 223;

/// The patch that puts a template back.
pub(crate) fn data(template: &PodTemplateSpec) -> Result<Value, serde_json::Error> {
    let mut template = serde_json::to_value(template)?;
    if let Value::Object(fields) = &mut template {
        fields.insert("$patch".to_owned(), "replace".into());
    }
    Ok(sorted(json!({ "spec": { "template": template } })))
}

/// The template that a revision puts back.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let data = &revision.data.as_ref()?.0;
    let mut template = data.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// The same value with the fields of every object in alphabetical order, as Go writes its maps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> = fields.into_iter().collect();
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(key, value)| (key, sorted(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

/// The hash of a patch as Kubernetes computes it: FNV-1 of the bytes Go would write, and of the
/// count of collisions.
pub(crate) fn hash(data: &Value, collisions: i32) -> String {
    let mut text = data.to_string();
    // Go writes these so that JSON can stand in a web page.
    for (plain, escaped) in [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ] {
        if text.contains(plain) {
            text = text.replace(plain, escaped);
        }
    }
    text.push_str(&collisions.to_string());
    encoded(fnv1(text.as_bytes()))
}

fn fnv1(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte)
    })
}

/// A number as a word that cannot be read as one.
fn encoded(number: u32) -> String {
    let digits = number.to_string();
    let letter = |digit: u8| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]);
    digits.bytes().map(letter).collect()
}

/// A new revision of `owner`.
pub(crate) fn revision(
    owner: &ObjectMeta,
    labels: Option<&BTreeMap<String, String>>,
    data: &Value,
    number: i64,
    collisions: i32,
) -> ControllerRevision {
    let hash = hash(data, collisions);
    let mut labels = labels.cloned().unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    named(owner, &hash, labels, data, number)
}

/// A new revision of `owner` whose hash was made elsewhere.
pub(crate) fn named(
    owner: &ObjectMeta,
    hash: &str,
    labels: BTreeMap<String, String>,
    data: &Value,
    number: i64,
) -> ControllerRevision {
    let prefix: String = owner
        .name
        .iter()
        .flat_map(|name| name.chars())
        .take(PREFIX)
        .collect();
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: owner.namespace.clone(),
            labels: Some(labels),
            annotations: owner.annotations.clone(),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data.clone())),
        revision: number,
    }
}

/// Whether a revision holds this patch.
pub(crate) fn holds(revision: &ControllerRevision, data: &Value) -> bool {
    revision.data.as_ref().is_some_and(|held| held.0 == *data)
}

/// Puts the oldest first.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by(|a, b| age(a).cmp(&age(b)));
}

fn age(revision: &ControllerRevision) -> (i64, Option<Timestamp>, &str) {
    let created = revision.metadata.creation_timestamp.as_ref();
    (
        revision.revision,
        created.map(|time| time.0),
        name(revision),
    )
}

/// The number of the next revision, after these in order.
pub(crate) fn next(revisions: &[Arc<ControllerRevision>]) -> i64 {
    revisions.last().map_or(0, |newest| newest.revision) + 1
}

/// The revision's name.
pub(crate) fn name(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

/// What to do so that the newest revision holds the patch of now.
#[derive(Debug, PartialEq)]
pub(crate) enum Newest<'a> {
    /// It does already.
    Is(&'a Arc<ControllerRevision>),
    /// An older one does: give it this number.
    Renumber(&'a ControllerRevision, i64),
    /// None does: create one of this number.
    Create(i64),
}

/// The revision to bring forward, from those in order.
pub(crate) fn newest<'a>(revisions: &'a [Arc<ControllerRevision>], data: &Value) -> Newest<'a> {
    let number = next(revisions);
    let newest = revisions.last().filter(|newest| holds(newest, data));
    let older = || {
        revisions
            .iter()
            .rev()
            .find(|revision| holds(revision, data))
    };
    match newest {
        Some(newest) => Newest::Is(newest),
        None => older().map_or(Newest::Create(number), |old| Newest::Renumber(old, number)),
    }
}

/// The revisions beyond the limit that nobody uses, oldest first.
pub(crate) fn surplus<'a>(
    revisions: &'a [Arc<ControllerRevision>],
    live: &BTreeSet<&str>,
    limit: Option<i32>,
) -> Vec<&'a ControllerRevision> {
    let Ok(limit) = usize::try_from(limit.unwrap_or(10)) else {
        return Vec::new();
    };
    let unused = revisions
        .iter()
        .filter(|revision| !live.contains(name(revision)));
    let unused: Vec<&ControllerRevision> = unused.map(Arc::as_ref).collect();
    let beyond = unused.len().saturating_sub(limit);
    unused.into_iter().take(beyond).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(name: &str, number: i64, image: &str) -> Arc<ControllerRevision> {
        let mut revision = ControllerRevision {
            data: Some(RawExtension(json!({ "image": image }))),
            revision: number,
            ..ControllerRevision::default()
        };
        revision.metadata.name = Some(name.to_owned());
        Arc::new(revision)
    }

    #[test]
    fn a_template_comes_back_as_it_went() {
        let mut template = PodTemplateSpec::default();
        template.metadata.get_or_insert_default().labels =
            Some(BTreeMap::from([("app".to_owned(), "web".to_owned())]));
        let data = data(&template).unwrap();
        assert_eq!(
            data.to_string(),
            r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}}}}}"#
        );
        let revision = super::revision(&ObjectMeta::default(), None, &data, 1, 0);
        assert_eq!(super::template(&revision), Some(template));
    }

    #[test]
    fn hashes_are_those_of_kubernetes() {
        // FNV-1 of the empty string and of "a", from its authors' test vectors.
        assert_eq!(fnv1(b""), 0x811c_9dc5);
        assert_eq!(fnv1(b"a"), 0x050c_5d7e);
        assert_eq!(encoded(10_296), encoded(10_296));
        assert_ne!(hash(&json!({}), 0), hash(&json!({}), 1));
    }

    #[test]
    fn the_newest_is_kept_an_older_one_brought_forward_and_a_new_one_made() {
        let revisions = [revision("a", 1, "x"), revision("b", 4, "y")];
        assert_eq!(
            newest(&revisions, &json!({"image": "y"})),
            Newest::Is(&revisions[1])
        );
        assert_eq!(
            newest(&revisions, &json!({"image": "x"})),
            Newest::Renumber(&revisions[0], 5)
        );
        assert_eq!(
            newest(&revisions, &json!({"image": "z"})),
            Newest::Create(5)
        );
        assert_eq!(newest(&[], &json!({})), Newest::Create(1));
    }

    #[test]
    fn what_is_in_use_does_not_count_towards_the_limit() {
        let revisions: Vec<_> = (1..6).map(|n| revision(&format!("r{n}"), n, "x")).collect();
        let live = BTreeSet::from(["r1", "r5"]);
        let gone = surplus(&revisions, &live, Some(1));
        assert_eq!(
            gone.iter().map(|r| name(r)).collect::<Vec<_>>(),
            ["r2", "r3"]
        );
        assert!(surplus(&revisions, &live, Some(3)).is_empty());
        assert!(surplus(&revisions, &live, None).is_empty());
    }
}
