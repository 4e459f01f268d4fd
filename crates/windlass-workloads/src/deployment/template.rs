//! Telling pod templates apart.
//!
//! The ReplicaSet of a Deployment is the one whose template equals the Deployment's; the hash of
//! the template only names it and labels its pods. Two different templates with one hash would
//! fight over one name, so a Deployment that finds its name taken counts a collision, and the
//! count goes into the next hash.

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// The label that carries the hash on ReplicaSets and pods.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// The alphabet of names made by a program: no vowels, so that no word appears by accident, and no
/// characters that people confuse.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The number of characters of a hash.
const LENGTH: usize = 10;

/// The hash of a template: the same for equal templates on every machine and in every run.
///
/// It is taken over the template's JSON, whose fields and map keys have one order. (Kubernetes
/// hashes Go's print-out of its own structure; the value differs, the role is the same.)
pub(crate) fn hash(
    template: &PodTemplateSpec,
    collisions: Option<i32>,
) -> Result<String, serde_json::Error> {
    let json = serde_json::to_vec(template)?;
    let mut state = fnv1a(FNV_OFFSET, &json);
    if let Some(collisions) = collisions {
        state = fnv1a(state, &collisions.to_le_bytes());
    }
    let base = ALPHABET.len() as u64;
    let mut name = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let index = usize::try_from(state % base).unwrap_or_default();
        name.push(char::from(ALPHABET[index]));
        state /= base;
    }
    Ok(name)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// The FNV-1a hash: short inputs, no adversary, and a value that must never change.
fn fnv1a(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

/// Whether two templates make the same pods: equal but for the hash label.
pub(crate) fn same(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    a == b || without_hash(a) == without_hash(b)
}

/// The template without its hash label, and with "no labels" written in one way.
fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let metadata = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(HASH_LABEL);
    }
    for map in [&mut metadata.labels, &mut metadata.annotations] {
        if map
            .as_ref()
            .is_some_and(std::collections::BTreeMap::is_empty)
        {
            *map = None;
        }
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Container, PodSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn template(image: &str, labels: &[(&str, &str)]) -> PodTemplateSpec {
        PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(
                    labels
                        .iter()
                        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                        .collect(),
                ),
                ..ObjectMeta::default()
            }),
            spec: Some(PodSpec {
                containers: vec![Container {
                    name: "main".to_owned(),
                    image: Some(image.to_owned()),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
        }
    }

    #[test]
    fn the_hash_never_changes_between_versions_of_windlass() {
        // Names of ReplicaSets are recorded by people and scripts.
        let hash = hash(&template("memcached:1.6.6", &[("app", "web")]), None).unwrap();
        assert_eq!(hash, "shqfxc4gr5");
    }

    #[test]
    fn a_collision_gives_another_hash() {
        let template = template("memcached:1.6.6", &[]);
        let hashes: std::collections::BTreeSet<_> = [None, Some(1), Some(2)]
            .map(|count| hash(&template, count).unwrap())
            .into();
        assert_eq!(hashes.len(), 3);
    }

    #[test]
    fn the_hash_label_makes_no_difference() {
        let plain = template("a", &[("app", "web")]);
        let hashed = template("a", &[("app", "web"), (HASH_LABEL, "xyz")]);
        assert!(same(&plain, &hashed));
        assert!(same(
            &template("a", &[]),
            &template("a", &[(HASH_LABEL, "xyz")])
        ));
        assert!(!same(&plain, &template("b", &[("app", "web")])));
        assert!(!same(&plain, &template("a", &[("app", "db")])));
    }

    proptest! {
        #[test]
        fn every_hash_is_a_valid_end_of_a_name(image in ".*", count in proptest::option::of(any::<i32>())) {
            let hash = hash(&template(&image, &[]), count).unwrap();
            prop_assert_eq!(hash.len(), LENGTH);
            prop_assert!(hash.bytes().all(|byte| ALPHABET.contains(&byte)));
        }

        #[test]
        fn equal_templates_have_equal_hashes(labels in prop::collection::btree_map("[a-z]{1,5}", "[a-z]{1,5}", 0..4)) {
            let forwards: BTreeMap<_, _> = labels.clone().into_iter().collect();
            let backwards: BTreeMap<_, _> = labels.into_iter().rev().collect();
            let mut a = template("a", &[]);
            let mut b = a.clone();
            a.metadata.get_or_insert_default().labels = Some(forwards);
            b.metadata.get_or_insert_default().labels = Some(backwards);
            prop_assert_eq!(hash(&a, None).unwrap(), hash(&b, None).unwrap());
        }
    }
}
