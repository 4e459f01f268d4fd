//! Claims: kept while a pod on a node names them.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use windlass::{
    Action, Context, Controller, Declare, Key, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    watch::Select,
};

use super::{add, has, remove};

const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// The controller that protects claims.
pub(crate) fn controller() -> Controller<PersistentVolumeClaim> {
    Controller::of_existing::<PersistentVolumeClaim>()
        .named("pvc-protection")
        .reconciler(Claims::declare)
}

struct Claims {
    pods: Reads<Pod>,
    written: Writes<PersistentVolumeClaim>,
}

impl Claims {
    fn declare(declare: &mut Declare<PersistentVolumeClaim>) -> Self {
        Self {
            pods: declare.reads(Pod::mapped_to(|pod: &Pod| {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let named = claims_of(pod).into_iter();
                named
                    .map(|claim| Key::namespaced(namespace, claim))
                    .collect()
            })),
            written: declare.writes(Access::to([Verb::Update])),
        }
    }
}

/// The claims a pod names, those made for its ephemeral volumes included.
pub(crate) fn claims_of(pod: &Pod) -> Vec<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    let mut claims = Vec::new();
    for volume in volumes.unwrap_or_default() {
        if let Some(source) = &volume.persistent_volume_claim {
            claims.push(source.claim_name.clone());
        } else if volume.ephemeral.is_some() {
            claims.push(format!("{name}-{}", volume.name));
        }
    }
    claims
}

/// Whether a pod uses a claim. One without a node does not yet, and will not begin to.
fn uses(pod: &Pod, claim: &str) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty()) && claims_of(pod).iter().any(|one| one == claim)
}

impl Reconciler for Claims {
    type Object = PersistentVolumeClaim;

    async fn reconcile(
        &self,
        claim: &PersistentVolumeClaim,
        ctx: &Context<PersistentVolumeClaim>,
    ) -> Result<Action> {
        // Admission does this; a claim from elsewhere has it done here.
        if !has(&claim.metadata, FINALIZER) {
            let mut protected = claim.clone();
            add(&mut protected.metadata, FINALIZER);
            self.written.update(ctx, &protected).await?;
        }
        Ok(Action::done())
    }

    async fn terminating(
        &self,
        claim: &PersistentVolumeClaim,
        ctx: &Context<PersistentVolumeClaim>,
    ) -> Result<Action> {
        if !has(&claim.metadata, FINALIZER) {
            return Ok(Action::done());
        }
        let pods = self.pods.list(ctx, Select::own_namespace()).await?;
        if pods.iter().any(|pod| uses(pod, ctx.key().name())) {
            return Ok(Action::done());
        }
        let mut released = claim.clone();
        remove(&mut released.metadata, FINALIZER);
        match self.written.update(ctx, &released).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Action::done()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_without_a_node_uses_nothing_yet() {
        let pod = |node: Option<&str>| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": "p"},
                "spec": {"nodeName": node, "containers": [], "volumes": [
                    {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "b", "ephemeral": {}},
                ]},
            }))
            .expect("a pod")
        };
        assert!(uses(&pod(Some("n")), "data"));
        assert!(uses(&pod(Some("n")), "p-b"));
        assert!(!uses(&pod(Some("n")), "other"));
        assert!(!uses(&pod(None), "data"));
    }
}
