//! Values of Go's structs that a template can meet.

use super::value::{ListType, Value};
use crate::semver::Version;

/// A value with fields.
pub(crate) enum Object {
    Capabilities(Capabilities),
    KubeVersion(KubeVersion),
    HelmVersion,
    Version(Version),
    Certificate { cert: String, key: String },
}

/// What a cluster can do.
#[derive(Clone)]
pub(crate) struct Capabilities {
    pub(crate) kube: KubeVersion,
    pub(crate) api_versions: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct KubeVersion {
    pub(crate) version: String,
    pub(crate) normalized: String,
    pub(crate) major: String,
    pub(crate) minor: String,
}

/// The Helm that charts are rendered like.
pub(crate) const HELM_VERSION: &str = "v4.3.1";
/// Its commit.
const HELM_COMMIT: &str = "c0d08d0d6d9424d4a14febb5e8a3e51b0dd00dff";

impl Object {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Capabilities(_) => "*common.Capabilities",
            Self::KubeVersion(_) => "common.KubeVersion",
            Self::HelmVersion => "version.BuildInfo",
            Self::Version(_) => "*semver.Version",
            Self::Certificate { .. } => "sprig.certificate",
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Capabilities(_) | Self::Version(_) => "ptr",
            Self::KubeVersion(_) | Self::HelmVersion | Self::Certificate { .. } => "struct",
        }
    }

    /// A field, or a method without arguments.
    pub(crate) fn field(&self, name: &str) -> Option<Value> {
        match self {
            Self::Capabilities(capabilities) => match name {
                "KubeVersion" => Some(Value::object(Self::KubeVersion(capabilities.kube.clone()))),
                "APIVersions" => Some(Value::typed_list(
                    capabilities.api_versions.iter().map(Value::str).collect(),
                    ListType::VersionSet,
                )),
                "HelmVersion" => Some(Value::object(Self::HelmVersion)),
                "Copy" => Some(Value::object(Self::Capabilities(capabilities.clone()))),
                _ => None,
            },
            Self::KubeVersion(kube) => match name {
                "Version" | "GitVersion" => Some(Value::str(&kube.version)),
                "String" => Some(Value::str(&kube.normalized)),
                "Major" => Some(Value::str(&kube.major)),
                "Minor" => Some(Value::str(&kube.minor)),
                _ => None,
            },
            Self::HelmVersion => match name {
                "Version" => Some(Value::str(HELM_VERSION)),
                "GitCommit" => Some(Value::str(HELM_COMMIT)),
                "GitTreeState" => Some(Value::str("clean")),
                "GoVersion" => Some(Value::str("go1.27.2")),
                "KubeClientVersion" => Some(Value::str("v1.37")),
                _ => None,
            },
            Self::Version(version) => match name {
                "Major" => Some(Value::Int64(
                    i64::try_from(version.major).unwrap_or(i64::MAX),
                )),
                "Minor" => Some(Value::Int64(
                    i64::try_from(version.minor).unwrap_or(i64::MAX),
                )),
                "Patch" => Some(Value::Int64(
                    i64::try_from(version.patch).unwrap_or(i64::MAX),
                )),
                "Prerelease" => Some(Value::str(&version.prerelease)),
                "Metadata" => Some(Value::str(&version.metadata)),
                "Original" => Some(Value::str(&version.original)),
                "String" => Some(Value::str(version.to_string())),
                "IncMajor" => Some(Value::object(Self::Version(version.next_major()))),
                "IncMinor" => Some(Value::object(Self::Version(version.next_minor()))),
                "IncPatch" => Some(Value::object(Self::Version(version.next_patch()))),
                _ => None,
            },
            Self::Certificate { cert, key } => match name {
                "Cert" => Some(Value::str(cert)),
                "Key" => Some(Value::str(key)),
                _ => None,
            },
        }
    }

    /// The fields that are written as JSON, in their order.
    pub(crate) fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Capabilities(_) => &["KubeVersion", "APIVersions", "HelmVersion"],
            Self::KubeVersion(_) => &["Version", "Major", "Minor"],
            Self::HelmVersion => &[
                "Version",
                "GitCommit",
                "GitTreeState",
                "GoVersion",
                "KubeClientVersion",
            ],
            Self::Version(_) => &[],
            Self::Certificate { .. } => &["Cert", "Key"],
        }
    }

    /// The name of a field in JSON.
    pub(crate) fn json_name(&self, field: &'static str) -> &'static str {
        match (self, field) {
            (Self::HelmVersion, "Version") => "version",
            (Self::HelmVersion, "GitCommit") => "git_commit",
            (Self::HelmVersion, "GitTreeState") => "git_tree_state",
            (Self::HelmVersion, "GoVersion") => "go_version",
            (Self::HelmVersion, "KubeClientVersion") => "kube_client_version",
            (_, field) => field,
        }
    }

    /// How it prints itself, if it does.
    pub(crate) fn shown(&self) -> Option<String> {
        match self {
            Self::Version(version) => Some(version.to_string()),
            _ => None,
        }
    }

    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Certificate { cert, key }, Self::Certificate { cert: c, key: k }) => {
                cert == c && key == k
            }
            (Self::Version(a), Self::Version(b)) => a.original == b.original,
            (Self::KubeVersion(a), Self::KubeVersion(b)) => a.version == b.version,
            (Self::HelmVersion, Self::HelmVersion) => true,
            _ => false,
        }
    }
}
