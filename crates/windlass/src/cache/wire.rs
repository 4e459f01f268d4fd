//! [`Wire`]: an object as it came over the wire, of whatever kind.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// What the name of the field manager ends with that changes values by patches, rather than by
/// applies: what it owns is the operator's as well.
pub(crate) const VALUES: &str = "-values";

/// An undecoded object.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) value: Value,
    /// For the client's traits alone: nothing is read from it.
    meta: ObjectMeta,
}

impl Wire {
    pub(crate) fn new(value: Value) -> Self {
        Self {
            value,
            meta: ObjectMeta::default(),
        }
    }
}

impl<'de> Deserialize<'de> for Wire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::new)
    }
}

impl Serialize for Wire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Resource for Wire {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
