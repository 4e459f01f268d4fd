//! A pod of a StatefulSet: its template, with an identity and with storage of its own.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::ordinal::{claim_name, pod_name, spec};

/// The label with the pod's name, for a Service of one pod.
pub(crate) const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// The label with the pod's ordinal.
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
/// The label with the revision the pod was made from.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";

/// A template and the revision it is of.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The name of the revision.
    pub name: String,
    /// Its template.
    pub template: PodTemplateSpec,
}

/// The revision a pod was made from.
pub(crate) fn revision(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(REVISION_LABEL))
        .map_or("", String::as_str)
}

/// The templates of claims.
pub(crate) fn claim_templates(set: &StatefulSet) -> &[PersistentVolumeClaim] {
    let templates = spec(set).and_then(|spec| spec.volume_claim_templates.as_deref());
    templates.unwrap_or_default()
}

fn name_of(claim: &PersistentVolumeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

/// The claims of the pod with this ordinal.
pub(crate) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let selected = spec(set).and_then(|spec| spec.selector.match_labels.clone());
    let claim = |template: &PersistentVolumeClaim| {
        let mut claim = template.clone();
        claim.metadata.name = Some(claim_name(set, name_of(template), ordinal));
        claim.metadata.namespace.clone_from(&set.metadata.namespace);
        let labels = claim.metadata.labels.get_or_insert_default();
        labels.extend(selected.clone().unwrap_or_default());
        claim.status = None;
        claim
    };
    claim_templates(set).iter().map(claim).collect()
}

/// The pod with this ordinal, made from this version.
pub(crate) fn pod(set: &StatefulSet, version: &Version, ordinal: i32) -> Pod {
    let template = version.template.clone();
    let metadata = template.metadata.unwrap_or_default();
    let name = pod_name(set, ordinal);
    let mut pod = Pod {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            generate_name: Some(format!(
                "{}-",
                set.metadata.name.as_deref().unwrap_or_default()
            )),
            namespace: set.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    };
    identify(set, &mut pod, ordinal);
    store(set, &mut pod, ordinal);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION_LABEL.to_owned(), version.name.clone());
    let pod_spec = pod.spec.get_or_insert_default();
    pod_spec.hostname = Some(name);
    pod_spec.subdomain = spec(set)
        .and_then(|spec| spec.service_name.clone())
        .filter(|service| !service.is_empty());
    pod
}

/// Gives the pod the labels of its identity.
pub(crate) fn identify(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(NAME_LABEL.to_owned(), pod_name(set, ordinal));
    labels.insert(INDEX_LABEL.to_owned(), ordinal.to_string());
}

/// Whether the pod has the label of its identity.
pub(crate) fn is_identified(set: &StatefulSet, pod: &Pod, ordinal: i32) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(NAME_LABEL)) == Some(&pod_name(set, ordinal))
}

/// Gives the pod a volume for each of its claims, in the place of volumes of the same name.
pub(crate) fn store(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let templates = claim_templates(set);
    if templates.is_empty() {
        return;
    }
    let claimed = |template: &PersistentVolumeClaim| Volume {
        name: name_of(template).to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim_name(set, name_of(template), ordinal),
            read_only: None,
        }),
        ..Volume::default()
    };
    let mut volumes: Vec<Volume> = templates.iter().map(claimed).collect();
    let pod_spec = pod.spec.get_or_insert_default();
    let others = pod_spec.volumes.take().unwrap_or_default().into_iter();
    let is_other = |volume: &Volume| templates.iter().all(|one| name_of(one) != volume.name);
    volumes.extend(others.filter(is_other));
    pod_spec.volumes = Some(volumes);
}

/// Whether the pod has a volume for each of its claims.
pub(crate) fn is_stored(set: &StatefulSet, pod: &Pod, ordinal: i32) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    let volumes = volumes.unwrap_or_default();
    claim_templates(set).iter().all(|template| {
        let wanted = claim_name(set, name_of(template), ordinal);
        volumes.iter().any(|volume| {
            let source = volume.persistent_volume_claim.as_ref();
            volume.name == name_of(template)
                && source.is_some_and(|source| source.claim_name == wanted)
        })
    })
}
