//! The persistent volume controllers: claims find volumes, and volumes are given back.
//!
//! A claim is bound to the volume that suits it ([`matching`]), or to one that is made for it in a
//! [`local`] folder, by the class that every cluster has. That class waits for the first pod, so
//! that the volume is where the pod is. Binding has two halves, volume first, so that it can go on
//! wherever it was broken off ([`claim`]); [`reclaim`] follows the volume after its claim is gone.

mod claim;
mod local;
mod matching;
mod reclaim;

use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass::{
    Operator,
    handle::{Access, Verb},
    run::TaskContext,
};

pub use self::local::LocalVolumes;
pub(crate) use self::matching::{best, is_reachable};

/// Says that a claim's binding is done.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Says that a binding was the controller's choice, and can be taken back.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Who made a volume.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Who makes volumes in local folders.
const PROVISIONER: &str = "windlass.dev/local";
/// The class that every cluster has.
const CLASS: &str = "local";

/// Adds the controllers, and the class whose volumes are in a local folder if there is one.
pub(crate) fn add_to(operator: Operator, local: Option<LocalVolumes>) -> Operator {
    let has_folder = local.is_some();
    let operator = operator
        .controller(claim::controller(local.clone()))
        .controller(reclaim::controller(local));
    if !has_folder {
        return operator;
    }
    let grants = [Access::of::<StorageClass>([Verb::Create, Verb::Patch])];
    operator.task("storage-class", grants, |task: TaskContext| async move {
        let _busy = task.environment.activity.busy("storage class");
        let classes: Api<StorageClass> = Api::all(task.client.clone());
        let class = json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": CLASS,
                "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
            },
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
        });
        let params = PatchParams::apply("windlass-workloads").force();
        classes.patch(CLASS, &params, &Patch::Apply(class)).await?;
        Ok(())
    })
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
