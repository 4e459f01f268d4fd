//! Warnings about the volumes of a pod: sources that are gone, and files in each other's way.

use crate::steps::steps;
use std::fmt;

use super::container::fractional;
use crate::validation::at::At;

/// Sources that do not work any more: the field, its name in the path, and what is told.
const GONE: &[(&str, &str, &str)] = &[
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
];

pub(super) fn sources(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for volume in spec.items("volumes") {
        for (field, name, told) in GONE {
            if volume.has(field) {
                warnings.push(format!("{volume}.{name}: {told}"));
            }
        }
        let ephemeral = volume.child("ephemeral");
        let template = ephemeral.child("volumeClaimTemplate");
        let claim = template.child("spec");
        let resources = claim.child("resources");
        for part in ["requests", "limits"] {
            fractional(&resources, part, "storage", warnings);
        }
    }
}

/// A file of a volume, and where it comes from.
#[derive(Clone, PartialEq)]
struct File {
    path: String,
    source: String,
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.path)?;
        if self.source.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.source)
        }
    }
}

/// How often two files of one pod are looked at beside each other: no more fit the warnings.
const MOST_LOOKS: usize = 10_000;

pub(super) fn overlaps(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut looks = MOST_LOOKS;
    for volume in spec.items("volumes") {
        let name = volume.text("name");
        for (field, named, what) in [
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
            ("downwardAPI", "", "DownwardAPI"),
        ] {
            let source = volume.child(field);
            let what = match named {
                "" => what.to_owned(),
                named => format!("{what} {:?}", source.text(named)),
            };
            let mut known = Vec::new();
            for file in items(&source, "") {
                overlap(&mut known, &mut looks, file, name, &what, warnings);
            }
        }
        let projected = volume.child("projected");
        let mut known = Vec::new();
        for source in projected.items("sources") {
            if source
                .value
                .as_object()
                .is_some_and(serde_json::Map::is_empty)
            {
                warnings.push(format!(
                    "volume {name:?} (Projected) has no sources provided"
                ));
            }
            for file in files(&source) {
                overlap(&mut known, &mut looks, file, name, "Projected", warnings);
            }
        }
    }
}

/// The files that a list of keys makes.
fn items(source: &At<'_, '_>, from: &str) -> Vec<File> {
    let file = |item: At<'_, '_>| File {
        path: item.text("path").trim_end_matches('/').to_owned(),
        source: from.to_owned(),
    };
    source.items("items").map(file).collect()
}

/// The files that a source of a projected volume makes.
fn files(source: &At<'_, '_>) -> Vec<File> {
    for (field, what) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        let of_field = source.child(field);
        if of_field.has("items") {
            return items(&of_field, &format!("{what} {:?}", of_field.text("name")));
        }
    }
    let downward = source.child("downwardAPI");
    if downward.has("items") {
        return items(&downward, "DownwardAPI");
    }
    match source.get("serviceAccountToken") {
        Some(token) => vec![File {
            path: token.text("path").trim_end_matches('/').to_owned(),
            source: "ServiceAccountToken".to_owned(),
        }],
        None => Vec::new(),
    }
}

fn overlap(
    known: &mut Vec<File>,
    looks: &mut usize,
    file: File,
    volume: &str,
    what: &str,
    warnings: &mut Vec<String>,
) {
    let below = |path: &str, above: &str| {
        let rest = path.strip_prefix(above);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let looked_at = known.len().min(*looks);
    *looks -= looked_at;
    steps(looked_at);
    let others = known.iter().take(looked_at).filter(|other| {
        let both = !file.path.is_empty() && !other.path.is_empty();
        both && (below(&other.path, &file.path) || below(&file.path, &other.path))
    });
    for other in others {
        warnings.push(format!(
            "volume {volume:?} ({what}): overlapping paths: {file} with {other}"
        ));
    }
    known.push(file);
}
