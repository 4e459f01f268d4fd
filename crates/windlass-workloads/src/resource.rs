//! Every kind the API server serves, as discovery tells it.
//!
//! Garbage collection and namespace deletion treat all kinds alike, those of this very minute's
//! custom resource definitions included, so neither can name them at compile time.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::PartialObjectMeta;
use kube::discovery::{ApiCapabilities, ApiResource, Discovery, Scope};
use kube::{Api, Client};

/// An object of any kind, without anything but its metadata: neither is the rest asked for.
pub(crate) type Metadata = PartialObjectMeta;

/// A kind, whatever its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind's name.
    pub kind: String,
}

impl GroupKind {
    /// The kind that an owner reference names.
    pub(crate) fn named_by(reference: &OwnerReference) -> Self {
        let group = reference
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        Self {
            group: group.to_owned(),
            kind: reference.kind.clone(),
        }
    }
}

/// A kind and how its objects are reached.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    api: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    verbs: Vec<String>,
}

impl Resource {
    fn new((api, capabilities): (ApiResource, ApiCapabilities)) -> Self {
        Self {
            api,
            namespaced: capabilities.scope == Scope::Namespaced,
            verbs: capabilities.operations,
        }
    }

    /// The kind.
    pub(crate) fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: self.api.group.clone(),
            kind: self.api.kind.clone(),
        }
    }

    /// The name as people write it: `pods`, `deployments.apps`.
    pub(crate) fn name(&self) -> String {
        if self.api.group.is_empty() {
            self.api.plural.clone()
        } else {
            format!("{}.{}", self.api.plural, self.api.group)
        }
    }

    /// The name with its group even when that is empty, as a namespace's conditions have it: `pods.`.
    pub(crate) fn name_with_group(&self) -> String {
        format!("{}.{}", self.api.plural, self.api.group)
    }

    /// Whether all of these verbs are served.
    pub(crate) fn allows(&self, verbs: &[&str]) -> bool {
        verbs
            .iter()
            .all(|verb| self.verbs.iter().any(|served| served == verb))
    }

    /// Whether it is served in the same way.
    pub(crate) fn is_reached_like(&self, other: &Self) -> bool {
        self.api == other.api && self.namespaced == other.namespaced
    }

    /// The way to the objects in one namespace.
    pub(crate) fn within(&self, client: Client, namespace: &str) -> Api<Metadata> {
        Api::namespaced_with(client, namespace, &self.api)
    }

    /// The way to all objects.
    pub(crate) fn everywhere(&self, client: Client) -> Api<Metadata> {
        Api::all_with(client, &self.api)
    }

    /// The way to an object that lives in `namespace`, if the kind has namespaces.
    pub(crate) fn beside(&self, client: Client, namespace: Option<&str>) -> Api<Metadata> {
        match namespace {
            Some(namespace) if self.namespaced => self.within(client, namespace),
            _ => self.everywhere(client),
        }
    }
}

/// Every kind served, at its most stable version.
pub(crate) async fn discover(
    client: &Client,
) -> Result<BTreeMap<GroupKind, Resource>, kube::Error> {
    // In two requests, not one for every version of every group.
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    Ok(discovery
        .groups()
        .flat_map(kube::discovery::ApiGroup::resources_by_stability)
        .map(Resource::new)
        .map(|resource| (resource.group_kind(), resource))
        .collect())
}
