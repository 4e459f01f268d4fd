//! Schemas of custom resources: what is wrong with a `CustomResourceDefinition`, and what it makes
//! of its objects.
//!
//! | module | what |
//! | --- | --- |
//! | `definition`, `version`, `conversion`, `approval`, `schema_check`, `list_check`, `structural`, `default_check` | what is wrong with a definition |
//! | `names` | which of the names a definition asks for it gets, and what its status says |
//! | `object` | one version of a definition, as it reads and checks its objects |
//! | [`schema`], `prune` | what a schema makes of an object: unknown fields, nulls, defaults |
//! | `validate`, `format`, `scale`, `lists`, `embedded`, `rules`, `ratchet` | what is wrong with an object |
//! | `declare`, `field_path`, `jsonpath`, `shown` | parts of these |
//!
//! It knows nothing of how objects are stored or served.

mod approval;
mod conversion;
mod declare;
mod default_check;
mod definition;
mod embedded;
mod error;
mod field_path;
mod format;
mod jsonpath;
mod list_check;
mod lists;
mod names;
mod object;
mod path;
mod prune;
mod ratchet;
mod rules;
mod scale;
pub mod schema;
mod schema_check;
mod shown;
mod structural;
mod validate;
mod version;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use definition::{fill_defaults, has_condition, unknown_formats, validate};
pub use error::{MetadataError, ReadError};
pub use jsonpath::JsonPath;
pub use names::{mark_terminating, set_condition, status_of};
pub use object::{ObjectSchema, ReadMetadata, Schemas};
pub use prune::TooMuch;
pub use scale::ScalePaths;
pub use schema::Schema;

/// The finalizer that keeps a CRD until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Kubernetes' order of versions, the preferred first: stable before beta before alpha, newest first, others last.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    fn rank(version: &str) -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let (stability, minor) = match &rest[digits..] {
            "" => (2, 0),
            rest => {
                let (stability, minor) = rest
                    .strip_prefix("beta")
                    .map(|minor| (1, minor))
                    .or_else(|| rest.strip_prefix("alpha").map(|minor| (0, minor)))?;
                (stability, minor.parse().ok()?)
            }
        };
        Some((stability, major, minor))
    }
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}
