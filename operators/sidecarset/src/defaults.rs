//! What a set leaves out: the API's own defaults for containers and volumes, and the set's own.
//!
//! They are filled in when the set is stored, so that a set whose author leaves something out and one
//! whose author writes the default are the same, and a pod has what the set says.

use k8s_openapi::{
    api::core::v1::{Container, Probe, Volume},
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::kind::{BEFORE, DISABLED, ROLLING_UPDATE, SharePolicy, SidecarSet};

/// The mode of files made from Secrets and `ConfigMaps`: 0644.
const MODE: i32 = 0o644;

/// Fills in what a set leaves out.
pub(crate) fn fill_in(set: &mut SidecarSet) {
    let spec = &mut set.spec;
    let strategy = &mut spec.update_strategy;
    set_to(&mut strategy.of, ROLLING_UPDATE);
    strategy.max_unavailable.get_or_insert(IntOrString::Int(1));
    strategy.partition.get_or_insert(IntOrString::Int(0));
    for sidecar in &mut spec.containers {
        set_to(&mut sidecar.pod_inject_policy, BEFORE);
    }
    for sidecar in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        let share = sidecar
            .share_volume_policy
            .get_or_insert_with(SharePolicy::default);
        set_to(&mut share.of, DISABLED);
        container(&mut sidecar.container);
    }
    spec.volumes.iter_mut().for_each(volume);
}

fn set_to(field: &mut Option<String>, value: &str) {
    // The API takes an empty text for one that is left out.
    if field.as_deref().unwrap_or_default().is_empty() {
        *field = Some(value.to_owned());
    }
}

fn container(container: &mut Container) {
    set_to(
        &mut container.termination_message_path,
        "/dev/termination-log",
    );
    set_to(&mut container.termination_message_policy, "File");
    let latest = container.image.as_deref().is_some_and(is_latest);
    let pull = if latest { "Always" } else { "IfNotPresent" };
    set_to(&mut container.image_pull_policy, pull);
    for port in container.ports.iter_mut().flatten() {
        set_to(&mut port.protocol, "TCP");
    }
    for variable in container.env.iter_mut().flatten() {
        let source = variable.value_from.as_mut();
        if let Some(field) = source.and_then(|source| source.field_ref.as_mut()) {
            set_to(&mut field.api_version, "v1");
        }
    }
    let probes = [
        &mut container.liveness_probe,
        &mut container.readiness_probe,
        &mut container.startup_probe,
    ];
    probes.into_iter().flatten().for_each(probe);
}

fn probe(probe: &mut Probe) {
    probe.timeout_seconds.get_or_insert(1);
    probe.period_seconds.get_or_insert(10);
    probe.success_threshold.get_or_insert(1);
    probe.failure_threshold.get_or_insert(3);
    if let Some(get) = &mut probe.http_get {
        set_to(&mut get.path, "/");
        set_to(&mut get.scheme, "HTTP");
    }
}

fn volume(volume: &mut Volume) {
    if let Some(source) = &mut volume.config_map {
        source.default_mode.get_or_insert(MODE);
    }
    if let Some(source) = &mut volume.secret {
        source.default_mode.get_or_insert(MODE);
    }
    if let Some(source) = &mut volume.projected {
        source.default_mode.get_or_insert(MODE);
    }
    if let Some(source) = &mut volume.downward_api {
        source.default_mode.get_or_insert(MODE);
    }
    if let Some(source) = &mut volume.host_path {
        source.type_.get_or_insert_default();
    }
}

/// Whether an image is the latest, by saying so or by saying nothing.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    match image.rsplit_once(':') {
        // A colon before a slash is that of the registry's port.
        Some((_, tag)) if !tag.contains('/') => tag == "latest",
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn containers_get_the_defaults_of_the_api() {
        let mut set = crate::sample::set();
        set.spec.containers[0].container = serde_json::from_value(json!({
            "name": "a",
            "image": "registry:5000/a",
            "ports": [{ "containerPort": 80 }],
            "readinessProbe": { "httpGet": { "port": 80 } },
            "env": [{ "name": "N", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
        }))
        .unwrap();
        fill_in(&mut set);
        let once = serde_json::to_value(&set.spec).unwrap();
        let container: &Value = &once["containers"][0];
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["terminationMessagePolicy"], "File");
        assert_eq!(container["ports"][0]["protocol"], "TCP");
        assert_eq!(container["readinessProbe"]["httpGet"]["scheme"], "HTTP");
        assert_eq!(container["readinessProbe"]["periodSeconds"], 10);
        assert_eq!(
            container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"],
            "v1"
        );
        assert_eq!(container["podInjectPolicy"], "BeforeAppContainer");
        assert_eq!(container["shareVolumePolicy"]["type"], "disabled");
        assert_eq!(once["updateStrategy"]["maxUnavailable"], 1);
        fill_in(&mut set);
        assert_eq!(serde_json::to_value(&set.spec).unwrap(), once);
    }

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        for image in ["a", "registry:5000/a", "a:latest"] {
            assert!(is_latest(image), "{image}");
        }
        for image in [
            "a:1",
            "registry:5000/a:1",
            "a@sha256:0",
            "a:latest@sha256:0",
        ] {
            assert!(!is_latest(image), "{image}");
        }
    }
}
