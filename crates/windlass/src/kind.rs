//! Kinds: the Kubernetes types that an operator watches, reads and writes.
//!
//! Every type of `k8s-openapi` with metadata and every type that derives `kube::CustomResource` is
//! a [`Kind`]; nothing has to be implemented by hand. [`KindInfo`] is the same fact at run time.
//! An object of a kind is identified by a [`Key`]. Where a handle takes a name it takes anything
//! [`Named`]: a plain string is a name in the namespace of the object that is reconciled.
//!
//! ```
//! use windlass::kind::{Key, KindInfo};
//! # use k8s_openapi::api::apps::v1::Deployment;
//!
//! assert_eq!(KindInfo::of::<Deployment>().to_string(), "deployments.apps");
//! assert_eq!(Key::namespaced("default", "cache").to_string(), "default/cache");
//! ```

use std::fmt::{self, Debug};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::{
    Api, Client, Resource,
    core::{ApiResource, ClusterResourceScope, NamespaceResourceScope},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, Result};
pub use crate::{
    definition::one_of,
    key::{Key, Named, Names},
    object::Labels,
};

/// A Kubernetes object in some form: a [`Kind`], the metadata of one
/// ([`PartialObjectMeta`](kube::core::PartialObjectMeta)), or a
/// [`DynamicObject`](kube::core::DynamicObject) of a kind known only at run time.
pub trait Object:
    Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<T> Object for T where
    T: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A Kubernetes kind known at compile time.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
/// use windlass::{Kind, kind::KindScope};
///
/// fn is_namespaced<K: Kind>() -> bool {
///     <K::Scope as KindScope>::NAMESPACED
/// }
///
/// assert!(is_namespaced::<Deployment>() && !is_namespaced::<Node>());
/// ```
pub trait Kind: Object + Resource<DynamicType = (), Scope: KindScope> {}

impl<T> Kind for T where T: Object + Resource<DynamicType = (), Scope: KindScope> {}

/// Whether objects of a kind live in namespaces.
pub trait KindScope: Sized {
    /// True for kinds whose objects live in namespaces.
    const NAMESPACED: bool;

    /// Requests for objects of a kind of this scope, in a namespace or in all of them.
    fn api<K: Kind<Scope = Self>>(client: Client, namespace: Option<&str>) -> Api<K>;
}

impl KindScope for NamespaceResourceScope {
    const NAMESPACED: bool = true;

    fn api<K: Kind<Scope = Self>>(client: Client, namespace: Option<&str>) -> Api<K> {
        match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

impl KindScope for ClusterResourceScope {
    const NAMESPACED: bool = false;

    fn api<K: Kind<Scope = Self>>(client: Client, _: Option<&str>) -> Api<K> {
        Api::all(client)
    }
}

/// A kind as a value: what is needed to address its objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindInfo {
    /// API group; empty for the core group.
    pub group: String,
    /// API version within the group.
    pub version: String,
    /// The kind's name, such as `Deployment`.
    pub kind: String,
    /// The resource name in URLs and RBAC rules, such as `deployments`.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl KindInfo {
    /// The facts of a kind known at compile time.
    pub fn of<K: Kind>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespaced: <K::Scope as KindScope>::NAMESPACED,
        }
    }

    /// Whether this is that kind, in whatever version.
    pub(crate) fn is<K: Kind>(&self) -> bool {
        self.group == K::group(&()) && self.kind == K::kind(&())
    }

    /// `version` or `group/version`, as objects write it.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The facts of a kind that is known by its name alone, as the API server tells them.
    /// `api_version` is `v1` or `group/version`.
    pub async fn discover(client: &Client, api_version: &str, kind: &str) -> Result<Self> {
        Self::discovered(client, api_version, kind, |resource| resource.kind == kind).await
    }

    /// The facts of a resource that is known by its plural name, as in URLs and RBAC rules.
    pub async fn discover_resource(
        client: &Client,
        api_version: &str,
        plural: &str,
    ) -> Result<Self> {
        Self::discovered(client, api_version, plural, |resource| {
            resource.name == plural
        })
        .await
    }

    async fn discovered(
        client: &Client,
        api_version: &str,
        wanted: &str,
        is_wanted: impl Fn(&APIResource) -> bool,
    ) -> Result<Self> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let list = if group.is_empty() {
            client.list_core_api_resources(version).await
        } else {
            client.list_api_group_resources(api_version).await
        };
        let list = list.map_err(|error| Error::api("discover", api_version, error))?;
        let found = list
            .resources
            .into_iter()
            .find(|resource| !resource.name.contains('/') && is_wanted(resource));
        let Some(resource) = found else {
            let message = format!("cannot discover {wanted}: {api_version} does not serve it");
            return Err(Error::other(message));
        };
        Ok(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: resource.kind,
            plural: resource.name,
            namespaced: resource.namespaced,
        })
    }

    pub(crate) fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }
}

impl fmt::Display for KindInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}
