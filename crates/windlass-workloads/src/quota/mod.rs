//! The ResourceQuota controller: says how much of each quota is used ([`usage`]).
//!
//! The API server refuses what would be too much, and counts what it lets in; this counts what is
//! there, so that what has gone is given back.

mod usage;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use kube::core::DynamicObject;
use windlass::{
    Action, Context, Controller, Declare, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Watches, Writes},
    kind::KindInfo,
    watch::{Scope, Select, Selector},
};

use self::usage::Usage;
use crate::quantity::{self, Quantity};

/// Kinds of which nothing but the number counts: group, version, kind, plural. Other controllers
/// look at them as well, or they are few.
const COUNTED: [(&str, &str, &str, &str); 8] = [
    ("", "v1", "ReplicationController", "replicationcontrollers"),
    ("", "v1", "ResourceQuota", "resourcequotas"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("batch", "v1", "Job", "jobs"),
    ("batch", "v1", "CronJob", "cronjobs"),
];

/// The same for kinds that only quotas are about, and that may be many: they are watched while, and
/// where, a quota counts them.
const COUNTED_ON_DEMAND: [(&str, &str, &str, &str); 2] = [
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "Secret", "secrets"),
];

/// The controller of quotas.
pub(crate) fn controller() -> Controller<ResourceQuota> {
    Controller::of_existing::<ResourceQuota>()
        .reports_as("resourcequota-controller")
        .reconciler(Quotas::declare)
}

/// What is watched where a quota counts objects: their names, in its namespace.
fn names_in_namespace(ctx: &Context<ResourceQuota>) -> Scope {
    let namespace = ctx.key().namespace().unwrap_or_default();
    Scope::all().namespace(namespace).metadata_only()
}

struct Quotas {
    pods: Reads<Pod>,
    services: Reads<Service>,
    claims: Reads<PersistentVolumeClaim>,
    counted: Vec<Counted>,
    watches: Watches,
    written: Writes<ResourceQuota>,
}

/// Objects of which nothing but the number counts.
struct Counted {
    /// The names under which quotas limit them.
    names: Vec<String>,
    objects: Objects,
}

enum Objects {
    Watched(Reads<DynamicObject>),
    OnDemand(KindInfo),
}

impl Counted {
    fn limited_in(&self, hard: &BTreeMap<String, ApiQuantity>) -> bool {
        self.names.iter().any(|name| hard.contains_key(name))
    }
}

fn kind_of((group, version, kind, plural): (&str, &str, &str, &str)) -> KindInfo {
    KindInfo {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

/// The names under which objects of a kind are counted.
fn names_of(kind: &KindInfo) -> Vec<String> {
    let plural = &kind.plural;
    if kind.group.is_empty() {
        vec![plural.clone(), format!("count/{plural}")]
    } else {
        vec![format!("count/{plural}.{}", kind.group)]
    }
}

/// Everything in the namespace of a quota concerns it.
fn everything(_: &ResourceQuota) -> Selector {
    Selector::default()
}

impl Quotas {
    fn declare(declare: &mut Declare<ResourceQuota>) -> Self {
        let mut counted = Vec::new();
        for kind in COUNTED.map(kind_of) {
            let watch = DynamicObject::selected_by(everything);
            counted.push(Counted {
                names: names_of(&kind),
                objects: Objects::Watched(declare.reads_kind(&kind, watch)),
            });
        }
        let on_demand = COUNTED_ON_DEMAND.map(kind_of);
        let access = on_demand
            .clone()
            .map(|kind| Access::resource(kind.group, kind.plural, [Verb::List, Verb::Watch]));
        let watches = declare.watches(access);
        counted.extend(on_demand.map(|kind| Counted {
            names: names_of(&kind),
            objects: Objects::OnDemand(kind),
        }));
        Self {
            pods: declare.reads(Pod::selected_by(everything)),
            services: declare.reads(Service::selected_by(everything)),
            claims: declare.reads(PersistentVolumeClaim::selected_by(everything)),
            counted,
            watches,
            written: declare.writes(Access::none().on("status", [Verb::Update])),
        }
    }

    async fn usage(&self, quota: &ResourceQuota, ctx: &Context<ResourceQuota>) -> Result<Usage> {
        let hard = quota
            .spec
            .as_ref()
            .and_then(|spec| spec.hard.clone())
            .unwrap_or_default();
        let mut used = Usage::new();
        for pod in self.pods.list(ctx, Select::own_namespace()).await? {
            if usage::covers(quota, &pod) {
                usage::add(&mut used, usage::of_pod(&pod));
            }
        }
        if usage::has_scopes(quota) {
            self.watch_no_more(ctx);
            return Ok(used);
        }
        for service in self.services.list(ctx, Select::own_namespace()).await? {
            usage::add(&mut used, usage::of_service(&service));
        }
        for claim in self.claims.list(ctx, Select::own_namespace()).await? {
            usage::add(&mut used, usage::of_claim(&claim));
        }
        for counted in &self.counted {
            if let Some(count) = self.count(counted, &hard, ctx).await? {
                let count = Quantity::whole(count);
                used.extend(counted.names.iter().map(|name| (name.clone(), count)));
            }
        }
        Ok(used)
    }

    /// How many objects there are, if the quota limits their number.
    async fn count(
        &self,
        counted: &Counted,
        hard: &BTreeMap<String, ApiQuantity>,
        ctx: &Context<ResourceQuota>,
    ) -> Result<Option<usize>> {
        let limited = counted.limited_in(hard);
        let objects = match &counted.objects {
            Objects::Watched(_) if !limited => return Ok(None),
            Objects::Watched(objects) => objects.list(ctx, Select::own_namespace()).await?,
            Objects::OnDemand(kind) => {
                let scope = names_in_namespace(ctx);
                if !limited {
                    self.watches.stop(ctx, kind, &scope);
                    return Ok(None);
                }
                let objects = self.watches.start(ctx, kind, &scope).await?;
                objects.list(ctx, Select::own_namespace()).await?
            }
        };
        Ok(Some(objects.len()))
    }

    /// Ends the watches of what the quota does not count.
    fn watch_no_more(&self, ctx: &Context<ResourceQuota>) {
        let scope = names_in_namespace(ctx);
        for counted in &self.counted {
            if let Objects::OnDemand(kind) = &counted.objects {
                self.watches.stop(ctx, kind, &scope);
            }
        }
    }

    /// Whether what goes by this name is counted.
    fn is_known(&self, name: &str) -> bool {
        let fixed = [
            "pods",
            "count/pods",
            "cpu",
            "memory",
            "ephemeral-storage",
            "requests.storage",
            "services",
            "count/services",
            "services.nodeports",
            "services.loadbalancers",
            "persistentvolumeclaims",
            "count/persistentvolumeclaims",
        ];
        fixed.contains(&name)
            || ["requests.", "limits.", "hugepages-"]
                .iter()
                .any(|start| name.starts_with(start))
            || name.contains(".storageclass.storage.k8s.io/")
            || self
                .counted
                .iter()
                .any(|counted| counted.names.iter().any(|one| one == name))
    }
}

impl Reconciler for Quotas {
    type Object = ResourceQuota;

    async fn reconcile(
        &self,
        quota: &ResourceQuota,
        ctx: &Context<ResourceQuota>,
    ) -> Result<Action> {
        let hard = quota
            .spec
            .as_ref()
            .and_then(|spec| spec.hard.clone())
            .unwrap_or_default();
        let used = self.usage(quota, ctx).await?;
        let known = hard.keys().filter(|name| self.is_known(name));
        let used: BTreeMap<_, _> = known
            .map(|name| {
                (
                    name.clone(),
                    quantity::written(used.get(name).copied().unwrap_or_default()),
                )
            })
            .collect();
        let status = ResourceQuotaStatus {
            hard: Some(hard),
            used: Some(used),
        };
        if quota.status.as_ref() != Some(&status) {
            // As it was read: the API server counts what it lets in, and that must not be undone.
            let counted = ResourceQuota {
                status: Some(status),
                ..quota.clone()
            };
            self.written.put(ctx, ctx.key(), "status", &counted).await?;
        }
        Ok(Action::done())
    }
}
