//! Projected volumes: several sources in one directory.

use std::collections::BTreeSet;

use super::volume::{downward_file, key_to_path, local, mode};
use crate::validation::at::{At, Causes};

/// The least and the most seconds a token may live.
const TOKEN_SECONDS: (i64, i64) = (600, 1 << 32);
const CONFLICT: &str = "conflicting duplicate paths";

pub(super) fn check(at: &At<'_, '_>, causes: &mut Causes) {
    mode(&at.child("defaultMode"), causes);
    let mut paths = BTreeSet::new();
    for source in at.items("sources") {
        let mut given = 0;
        for kind in ["secret", "configMap"] {
            let Some(source) = source.get(kind) else {
                continue;
            };
            given += 1;
            if source.text("name").is_empty() {
                causes.push(source.child("name").required(""));
            }
            for item in source.items("items") {
                key_to_path(&item, causes);
                let path = item.text("path");
                if !path.is_empty() && !paths.insert(path) {
                    causes.push(at.invalid_value(source.text("name"), CONFLICT));
                }
            }
        }
        if let Some(downward) = source.get("downwardAPI") {
            given += 1;
            for file in downward.items("items") {
                downward_file(&downward, &file, causes);
                let path = file.text("path");
                if !path.is_empty() && !paths.insert(path) {
                    causes.push(at.invalid_value(path, CONFLICT));
                }
            }
        }
        if let Some(token) = source.get("serviceAccountToken") {
            given += 1;
            self::token(at, &token, causes);
        }
        for kind in ["clusterTrustBundle", "podCertificate"] {
            given += usize::from(source.has(kind));
        }
        if given > 1 {
            causes.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

fn token(volume: &At<'_, '_>, at: &At<'_, '_>, causes: &mut Causes) {
    let lives = at.child("expirationSeconds");
    let seconds = lives.value.as_i64().unwrap_or_default();
    if seconds < TOKEN_SECONDS.0 {
        causes.push(lives.invalid("may not specify a duration less than 10 minutes"));
    }
    if seconds > TOKEN_SECONDS.1 {
        causes.push(lives.invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let path = volume.child("path");
    match at.text("path") {
        "" => causes.push(path.required("")),
        text => local(&path, text, causes),
    }
}
