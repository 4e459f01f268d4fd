//! [`Versions`]: the versions of a kind, and how one becomes another.
//!
//! One version is the hub, in which objects are stored; every other is a spoke that can be made
//! from the hub and into it. Between two spokes the way leads over the hub.
//!
//! ```
//! # mod v1 {
//! #     #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! #     #[kube(group = "example.com", version = "v1", kind = "Demo", namespaced)]
//! #     pub struct DemoSpec { pub size: i32 }
//! # }
//! # mod v2 {
//! #     #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! #     #[kube(group = "example.com", version = "v2", kind = "Demo", namespaced)]
//! #     pub struct DemoSpec { pub replicas: i32 }
//! # }
//! use windlass::{Operator, Versions};
//!
//! impl From<v1::Demo> for v2::Demo {
//!     fn from(old: v1::Demo) -> Self {
//!         Self { metadata: old.metadata, spec: v2::DemoSpec { replicas: old.spec.size } }
//!     }
//! }
//!
//! impl From<v2::Demo> for v1::Demo {
//!     fn from(new: v2::Demo) -> Self {
//!         Self { metadata: new.metadata, spec: v1::DemoSpec { size: new.spec.replicas } }
//!     }
//! }
//!
//! let operator = Operator::new("demo").versions(Versions::hub::<v2::Demo>().spoke::<v1::Demo>());
//! assert_eq!(operator.crds()[0].spec.versions.len(), 2);
//! ```

use std::{collections::BTreeMap, fmt::Display, marker::PhantomData, sync::Arc};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;
use windlass_manifests::{Reach, webhook};

use crate::{Error, Kind, KindInfo, Result};

type Step = Arc<dyn Fn(Value) -> Result<Value> + Send + Sync>;

/// The versions of one kind, with `H` the one that objects are stored in.
pub struct Versions<H> {
    any: AnyVersions,
    hub: PhantomData<fn() -> H>,
}

/// Versions of whatever kind.
#[derive(Clone)]
pub(crate) struct AnyVersions {
    hub: KindInfo,
    crd: CustomResourceDefinition,
    /// By `apiVersion`: into the hub, and out of it.
    spokes: BTreeMap<String, (Step, Step)>,
}

impl Versions<()> {
    /// Versions of a kind of which `H` is stored, and the others are made from.
    pub fn hub<H: Kind + CustomResourceExt>() -> Versions<H> {
        Versions {
            any: AnyVersions {
                hub: KindInfo::of::<H>(),
                crd: H::crd(),
                spokes: BTreeMap::new(),
            },
            hub: PhantomData,
        }
    }
}

impl<H: Kind + CustomResourceExt> Versions<H> {
    /// Another version, that can be made from the hub and into it: by `From`, or by `TryFrom`
    /// where not every object can.
    #[must_use]
    pub fn spoke<S>(mut self) -> Self
    where
        S: Kind + CustomResourceExt + TryInto<H, Error: Display>,
        H: TryInto<S, Error: Display>,
    {
        let spoke = KindInfo::of::<S>();
        let (to, from) = (step::<S, H>(), step::<H, S>());
        self.any.spokes.insert(spoke.api_version(), (to, from));
        for mut version in S::crd().spec.versions {
            version.storage = false;
            self.any.crd.spec.versions.push(version);
        }
        self
    }
}

fn step<A: Kind + TryInto<B, Error: Display>, B: Kind>() -> Step {
    Arc::new(|object| {
        let (from, to) = (KindInfo::of::<A>(), KindInfo::of::<B>());
        let named = format!("{} {}", from.kind, object["metadata"]["name"]);
        let object: A = serde_json::from_value(object).map_err(|source| Error::Codec {
            verb: "decode",
            object: named.clone(),
            source,
        })?;
        let converted = object.try_into().map_err(|why| {
            Error::other(format!(
                "cannot convert {named} from {} to {}: {why}",
                from.version, to.version
            ))
        })?;
        serde_json::to_value(&converted).map_err(|source| Error::Codec {
            verb: "encode",
            object: named,
            source,
        })
    })
}

impl<H> From<Versions<H>> for AnyVersions {
    fn from(versions: Versions<H>) -> Self {
        versions.any
    }
}

impl AnyVersions {
    /// The definition with all versions, and who converts between them.
    pub(crate) fn crd(&self, operator: &str, namespace: &str) -> CustomResourceDefinition {
        let mut crd = self.crd.clone();
        if !self.spokes.is_empty() {
            let reach = Reach::Service(namespace.to_owned());
            crd.spec.conversion = Some(webhook::conversion(operator, &reach));
        }
        crd
    }

    /// The definition's name, when there is something to convert.
    pub(crate) fn converted(&self) -> Option<String> {
        (!self.spokes.is_empty()).then(|| self.name())
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.hub.plural, self.hub.group)
    }

    /// Whether objects of this group and kind are meant.
    pub(super) fn covers(&self, api_version: &str, kind: &str) -> bool {
        let group = api_version.split('/').next().unwrap_or_default();
        self.hub.kind == kind && self.hub.group == group
    }

    /// An object in another version.
    pub(super) fn convert(&self, object: Value, wanted: &str) -> Result<Value> {
        let own = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        if own == wanted {
            return Ok(object);
        }
        let hub = self.hub.api_version();
        let spoke = |version: &str| {
            self.spokes.get(version).ok_or_else(|| {
                Error::other(format!("cannot convert {}: {version} is unknown", self.hub))
            })
        };
        let object = if own == hub {
            object
        } else {
            spoke(&own)?.0(object)?
        };
        if wanted == hub {
            return Ok(object);
        }
        spoke(wanted)?.1(object)
    }
}
