//! The protection controllers: storage that is in use is not taken away from under its user.
//!
//! Admission gives every claim and every volume a finalizer. One that is deleted while it is used
//! stays, terminating, until it is not: a claim while a pod that names it has a node, a volume
//! while it is bound. Then its finalizer is removed, and it goes.

mod claim;
mod volume;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Operator;

pub(crate) use self::claim::claims_of;

/// Adds both controllers.
pub(crate) fn add_to(operator: Operator) -> Operator {
    operator
        .controller(claim::controller())
        .controller(volume::controller())
}

fn has(metadata: &ObjectMeta, finalizer: &str) -> bool {
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|name| name == finalizer)
}

fn add(metadata: &mut ObjectMeta, finalizer: &str) {
    let finalizers = metadata.finalizers.get_or_insert_default();
    finalizers.push(finalizer.to_owned());
}

fn remove(metadata: &mut ObjectMeta, finalizer: &str) {
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.retain(|name| name != finalizer);
    }
}
