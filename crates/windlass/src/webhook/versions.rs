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
//! use windlass::{Operator, webhook::{Versions}};
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

use crate::{Error, Kind, Result, definition::definition_of, kind::KindInfo};

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
    /// None if a type has no structural schema.
    crd: Option<CustomResourceDefinition>,
    flaws: Vec<String>,
    /// By `apiVersion`: into the hub, and out of it.
    spokes: BTreeMap<String, (Step, Step)>,
    /// By `apiVersion`, the hub's too: into the type and out of it.
    plain: BTreeMap<String, Step>,
}

impl Versions<()> {
    /// Versions of a kind of which `H` is stored, and the others are made from.
    pub fn hub<H: Kind + CustomResourceExt>() -> Versions<H> {
        let hub = KindInfo::of::<H>();
        let plain = [(hub.api_version(), step::<H, H>())];
        let mut any = AnyVersions {
            hub,
            crd: None,
            flaws: Vec::new(),
            spokes: BTreeMap::new(),
            plain: plain.into(),
        };
        any.crd = any.defined::<H>();
        Versions {
            any,
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
        let plain = &mut self.any.plain;
        plain.insert(spoke.api_version(), step::<S, S>());
        let defined = self.any.defined::<S>();
        for mut version in defined.into_iter().flat_map(|crd| crd.spec.versions) {
            version.storage = false;
            if let Some(crd) = &mut self.any.crd {
                crd.spec.versions.push(version);
            }
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
    /// The definition of one version; what is wrong with it is kept.
    fn defined<K: CustomResourceExt>(&mut self) -> Option<CustomResourceDefinition> {
        let defined = definition_of::<K>();
        defined.map_err(|flaw| self.flaws.push(flaw)).ok()
    }

    /// The definition with all versions, and who converts between them.
    pub(crate) fn crd(&self, operator: &str, namespace: &str) -> Option<CustomResourceDefinition> {
        let mut crd = self.crd.clone()?;
        if !self.spokes.is_empty() {
            let reach = Reach::Service(namespace.to_owned());
            crd.spec.conversion = Some(webhook::conversion(operator, &reach));
        }
        Some(crd)
    }

    pub(super) fn definition(&self) -> Option<&CustomResourceDefinition> {
        self.crd.as_ref()
    }

    /// Why the definition of a version could not be made.
    pub(crate) fn flaws(&self) -> impl Iterator<Item = &String> {
        self.flaws.iter()
    }

    /// Every way there and back, as `apiVersion`s: from a spoke over the hub, and from the hub over
    /// a spoke.
    pub(super) fn ways(&self) -> Vec<(String, String)> {
        let hub = self.hub.api_version();
        let spokes = self.spokes.keys();
        spokes
            .flat_map(|spoke| [(spoke.clone(), hub.clone()), (hub.clone(), spoke.clone())])
            .collect()
    }

    /// The object as its own type writes it.
    pub(super) fn plain(&self, object: Value) -> Result<Value> {
        let own = object["apiVersion"].as_str().unwrap_or_default();
        match self.plain.get(own) {
            Some(step) => step(object),
            None => Err(Error::other(format!("{own} is unknown"))),
        }
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
