//! The ResourceQuota controller: says how much of each quota is used ([`usage`]).
//!
//! The API server refuses what would be too much, and counts what it lets in; this counts what is
//! there, so that what has gone is given back.

mod usage;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service,
};
use kube::core::DynamicObject;
use windlass::{
    Action, Context, Controller, Declare, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    kind::KindInfo,
    watch::{Scope, Select, Selector},
};

use self::usage::Usage;
use crate::quantity::{self, Quantity};

/// Kinds of which nothing but the number counts: group, version, kind, plural, and whether nobody
/// here needs more of them than their names.
const COUNTED: [(&str, &str, &str, &str, bool); 10] = [
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Secret", "secrets", true),
    (
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        false,
    ),
    ("", "v1", "ResourceQuota", "resourcequotas", false),
    ("apps", "v1", "Deployment", "deployments", false),
    ("apps", "v1", "ReplicaSet", "replicasets", false),
    ("apps", "v1", "StatefulSet", "statefulsets", false),
    ("apps", "v1", "DaemonSet", "daemonsets", false),
    ("batch", "v1", "Job", "jobs", false),
    ("batch", "v1", "CronJob", "cronjobs", false),
];

/// The controller of quotas.
pub(crate) fn controller() -> Controller<ResourceQuota> {
    Controller::of_existing::<ResourceQuota>()
        .reports_as("resourcequota-controller")
        .reconciler(Quotas::declare)
}

struct Quotas {
    pods: Reads<Pod>,
    services: Reads<Service>,
    claims: Reads<PersistentVolumeClaim>,
    /// The names under which objects are counted, and the objects.
    counted: Vec<(Vec<String>, Reads<DynamicObject>)>,
    written: Writes<ResourceQuota>,
}

/// Everything in the namespace of a quota concerns it.
fn everything(_: &ResourceQuota) -> Selector {
    Selector::default()
}

impl Quotas {
    fn declare(declare: &mut Declare<ResourceQuota>) -> Self {
        let mut counted = Vec::new();
        for (group, version, kind, plural, names_only) in COUNTED {
            let info = KindInfo {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespaced: true,
            };
            let mut watch = DynamicObject::selected_by(everything);
            if names_only {
                watch = watch.scoped(Scope::all().metadata_only());
            }
            let names = if group.is_empty() {
                vec![plural.to_owned(), format!("count/{plural}")]
            } else {
                vec![format!("count/{plural}.{group}")]
            };
            counted.push((names, declare.reads_kind(&info, watch)));
        }
        Self {
            pods: declare.reads(Pod::selected_by(everything)),
            services: declare.reads(Service::selected_by(everything)),
            claims: declare.reads(PersistentVolumeClaim::selected_by(everything)),
            counted,
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
            return Ok(used);
        }
        for service in self.services.list(ctx, Select::own_namespace()).await? {
            usage::add(&mut used, usage::of_service(&service));
        }
        for claim in self.claims.list(ctx, Select::own_namespace()).await? {
            usage::add(&mut used, usage::of_claim(&claim));
        }
        for (names, objects) in &self.counted {
            if !names.iter().any(|name| hard.contains_key(name)) {
                continue;
            }
            let count = Quantity::whole(objects.list(ctx, Select::own_namespace()).await?.len());
            used.extend(names.iter().map(|name| (name.clone(), count)));
        }
        Ok(used)
    }

    /// Whether somebody counts what goes by this name.
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
                .any(|(names, _)| names.iter().any(|one| one == name))
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
