//! Where a backup is: what a spec says about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// The kind of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StorageType {
    /// Amazon S3, and every store that speaks its protocol.
    #[default]
    S3,
}

/// An object in a store that speaks the protocol of S3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3Source {
    /// Bucket and key: `<bucket>/<key>`.
    #[schemars(length(min = 3, max = 1024), regex(pattern = r"^[^/]+/.+$"))]
    pub path: String,
    /// The Secret with the files `credentials` and `config` of the AWS command line.
    #[schemars(length(min = 1, max = 253))]
    pub aws_secret: String,
    /// The URL of the store; the one of Amazon for the region by default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub endpoint: String,
    /// Whether the bucket is part of the path of URLs, not of their host. Other stores than
    /// Amazon's need it most of the time; it is the default where `endpoint` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_path_style: Option<bool>,
}

/// Where a store is, without its key: what is needed to open it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The bucket.
    pub bucket: String,
    /// The URL of the store.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub endpoint: String,
    /// Whether the bucket is part of the path of URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_style: Option<bool>,
}

/// A place in a store, and the Secret that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) place: Place,
    pub(crate) key: String,
    pub(crate) secret: String,
}

impl S3Source {
    /// The place that this names.
    pub(crate) fn location(&self) -> Result<Location, StoreError> {
        let (bucket, key) = self
            .path
            .split_once('/')
            .filter(|(bucket, key)| !bucket.is_empty() && !key.is_empty())
            .ok_or_else(|| StoreError::Path(self.path.clone()))?;
        Ok(Location {
            place: Place {
                bucket: bucket.to_owned(),
                endpoint: self.endpoint.clone(),
                path_style: self.force_path_style,
            },
            key: key.trim_end_matches('/').to_owned(),
            secret: self.aws_secret.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(path: &str) -> Result<Location, StoreError> {
        let source = S3Source {
            path: path.to_owned(),
            ..S3Source::default()
        };
        source.location()
    }

    #[test]
    fn path_is_bucket_and_key() {
        let found = location("mybucket/a/etcd.backup").unwrap();
        assert_eq!(
            (found.place.bucket.as_str(), found.key.as_str()),
            ("mybucket", "a/etcd.backup")
        );
        for path in ["", "bucket", "bucket/", "/key"] {
            assert!(location(path).is_err(), "{path}");
        }
    }
}
