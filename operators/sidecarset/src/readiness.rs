//! Whether a pod is ready with the images it was sent.
//!
//! A pod's status lags behind its spec: right after a new image is sent, the status still shows the
//! old container, ready. And the old image may run under more than one container id: a container that
//! had not started, or that crashed before the node saw the new image, is started with the old image
//! after the new one was sent. So a pod counts as unavailable from the moment an image is sent until
//! its status proves all of this:
//!
//! - the condition Ready is True,
//! - the node has seen the present spec (`observedGeneration`, where the node reports it),
//! - each container that got an image runs, is ready, and its id is none that ran before,
//! - it runs the new image: the status names it, or it names and identifies none that ran before.
//!
//! What ran before is recorded on the pod in the same write as the new image, with the pod's version
//! as a precondition. So a restart of this operator loses nothing, and a late watch proves nothing.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::record::{Former, Record, SENT};

/// The registry and folder of an image that names none.
const DEFAULT_REGISTRIES: [&str; 2] = ["docker.io/library/", "docker.io/"];

/// Whether a pod is ready, and runs what these records say it was sent.
pub(crate) fn is_ready<'a>(pod: &Pod, records: impl Iterator<Item = &'a Record>) -> bool {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let mut sent = records.flat_map(|record| &record.former).peekable();
    let seen = sent.peek().is_none() || node_has_seen_spec(pod).unwrap_or(true);
    ready && seen && sent.all(|(name, formers)| runs_new(pod, name, formers))
}

/// What is known of the images a container had before it gets `image`: those of `known` that it may
/// still run, and the present one.
pub(crate) fn formers_of(pod: &Pod, name: &str, known: &[Former], image: &str) -> Vec<Former> {
    let mut formers = if runs_new(pod, name, known) {
        Vec::new()
    } else {
        // An image that was sent has not been seen to run: older ones still may.
        known.to_vec()
    };
    let status = status_of(pod, name);
    let id = status.and_then(|status| status.container_id.clone());
    let id = id.unwrap_or_default();
    let is_known = formers.iter().any(|former| former.container_id == id);
    let mut present = Former {
        image: image_of(pod, name).to_owned(),
        ..Former::default()
    };
    // A container that is known to run an older image says nothing about the present one.
    if let Some(status) = status.filter(|_| !id.is_empty() && !is_known) {
        status.image_id.clone_into(&mut present.image_id);
        present.container_id = id;
    }
    formers.retain(|former| !is_same(&former.image, &present.image));
    formers.push(present);
    // Back to an image that may still run: its container, if it does, is as good as a new one.
    formers.retain(|former| !is_same(&former.image, image));
    formers
}

/// Whether the node has seen the pod as it is now; none if nodes of this cluster do not report it.
fn node_has_seen_spec(pod: &Pod) -> Option<bool> {
    let seen = pod.status.as_ref()?.observed_generation?;
    (seen > 0).then(|| Some(seen) >= pod.metadata.generation)
}

fn runs_new(pod: &Pod, name: &str, formers: &[Former]) -> bool {
    let Some(status) = status_of(pod, name) else {
        return false;
    };
    let id = status.container_id.as_deref().unwrap_or_default();
    let running = status.state.as_ref().is_some_and(|s| s.running.is_some());
    if id.is_empty() || !running || !status.ready {
        return false;
    }
    if formers.iter().any(|former| former.container_id == id) {
        return false;
    }
    let wanted = image_of(pod, name);
    let digest = wanted.split_once('@').map(|(_, digest)| digest);
    if is_same(&status.image, wanted) || digest.is_some_and(|d| status.image_id.contains(d)) {
        return true;
    }
    // A runtime may name an image by another of its tags.
    let names = |former: &Former| is_same(&former.image, &status.image);
    let identifies =
        |former: &Former| !former.image_id.is_empty() && former.image_id == status.image_id;
    if formers
        .iter()
        .any(|former| names(former) || identifies(former))
    {
        // The old image, or the new one is the same under two tags and the runtime says the other,
        // which must not hold up a roll-out for ever. The old image was started before the new one was
        // sent, or crashed in the moment before the node saw it.
        let sent = pod
            .annotations()
            .get(SENT)
            .and_then(|sent| sent.parse().ok());
        let started = started_at(status);
        return formers.iter().any(identifies)
            && node_has_seen_spec(pod) == Some(true)
            && started
                .zip(sent)
                .is_some_and(|(at, sent): (_, Timestamp)| at >= sent);
    }
    true
}

fn started_at(status: &ContainerStatus) -> Option<Timestamp> {
    let running = status.state.as_ref()?.running.as_ref()?;
    running.started_at.as_ref().map(|time| time.0)
}

fn status_of<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == name)
}

fn image_of<'a>(pod: &'a Pod, name: &str) -> &'a str {
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let container = containers.find(|container| container.name == name);
    let image = container.and_then(|container| container.image.as_deref());
    image.unwrap_or_default()
}

/// Whether two names are of one image: `a` is `docker.io/library/a:latest`.
fn is_same(one: &str, other: &str) -> bool {
    fn parts(image: &str) -> (&str, &str) {
        let mut short = DEFAULT_REGISTRIES.iter();
        let short = short.find_map(|registry| image.strip_prefix(registry));
        let image = short.unwrap_or(image);
        let tag = image.rfind(':').filter(|at| !image[*at..].contains('/'));
        tag.map_or((image, "latest"), |at| (&image[..at], &image[at + 1..]))
    }
    parts(one) == parts(other)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    /// A container of a status: its id, its image and what identifies it.
    type Shown<'a> = (&'a str, &'a str, &'a str);

    /// A pod of generation 3 that should run `image` and shows this, ready, as of generation `seen`.
    fn pod(image: &str, (id, shown, image_id): Shown<'_>, seen: i64) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "generation": 3 },
            "spec": { "containers": [{ "name": "log", "image": image }] },
            "status": {
                "observedGeneration": seen,
                "conditions": [{ "type": "Ready", "status": "True" }],
                "containerStatuses": [{
                    "name": "log", "image": shown, "imageID": image_id, "containerID": id,
                    "ready": true, "restartCount": 0, "state": { "running": {} },
                }],
            },
        }))
        .unwrap()
    }

    fn former(image: &str, container_id: &str, image_id: &str) -> Former {
        Former {
            image: image.to_owned(),
            image_id: image_id.to_owned(),
            container_id: container_id.to_owned(),
        }
    }

    fn ready(pod: &Pod, formers: &[Former]) -> bool {
        let former = BTreeMap::from([("log".to_owned(), formers.to_vec())]);
        let record = Record {
            former,
            ..Record::default()
        };
        is_ready(pod, [&record].into_iter())
    }

    #[test]
    fn old_container_is_not_ready_whatever_its_status_claims() {
        let old = [former("log:1", "x0", "i1")];
        assert!(!ready(&pod("log:2", ("x0", "log:1", "i1"), 3), &old));
        assert!(!ready(&pod("log:2", ("x0", "log:2", "i2"), 3), &old));
        assert!(!ready(&pod("log:2", ("", "log:2", ""), 3), &old));
        assert!(ready(&pod("log:2", ("x1", "log:2", "i2"), 3), &old));
    }

    #[test]
    fn old_image_restarted_under_another_id_is_not_ready() {
        let old = [former("log:1", "x0", "i1")];
        assert!(!ready(&pod("log:2", ("x1", "log:1", "i1"), 2), &old));
        let unknown = [former("log:1", "", "")];
        assert!(!ready(&pod("log:2", ("x1", "log:1", "i1"), 2), &unknown));
        assert!(!ready(&pod("log:2", ("x1", "log:1", "i1"), 3), &unknown));
    }

    #[test]
    fn status_of_an_earlier_spec_is_not_ready() {
        let old = [former("log:1", "x0", "i1")];
        assert!(!ready(&pod("log:2", ("x1", "log:2", "i2"), 2), &old));
        let unreported = pod("log:2", ("x1", "log:2", "i2"), 0);
        assert!(ready(&unreported, &old), "an older kubelet");
    }

    #[test]
    fn image_named_by_another_tag_or_by_digest_is_ready() {
        let old = [former("log:1", "x0", "i1")];
        assert!(ready(&pod("log:2", ("x1", "log:stable", "i2"), 3), &old));
        let full = ("x1", "docker.io/library/log:2", "i2");
        assert!(ready(&pod("log:2", full, 3), &old));
        let digest = ("x1", "log:1", "log@sha256:2");
        assert!(ready(&pod("log@sha256:2", digest, 3), &old));
    }

    #[test]
    fn image_with_the_id_of_the_old_one_is_ready_if_it_was_started_later() {
        let old = former("log:1", "x0", "i1");
        let started = |at: &str| {
            let mut pod = pod("log:2", ("x1", "log:1", "i1"), 3);
            let sent = "1970-01-01T00:01:40Z".to_owned();
            pod.annotations_mut().insert(SENT.to_owned(), sent);
            let statuses = pod.status.as_mut().unwrap().container_statuses.as_mut();
            let running = json!({ "running": { "startedAt": at } });
            statuses.unwrap()[0].state = serde_json::from_value(running).unwrap();
            ready(&pod, std::slice::from_ref(&old))
        };
        assert!(
            !started("1970-01-01T00:01:39Z"),
            "a restart of the old image"
        );
        assert!(started("1970-01-01T00:01:41Z"), "two tags of one image");
    }

    #[test]
    fn image_sent_while_another_is_on_its_way_waits_for_the_last() {
        let first = pod("log:2", ("x0", "log:1", "i1"), 1);
        let formers = formers_of(&first, "log", &[former("log:1", "x0", "i1")], "log:3");
        assert_eq!(
            formers,
            [former("log:1", "x0", "i1"), former("log:2", "", "")]
        );
        for not_yet in [("x0", "log:1", "i1"), ("x1", "log:2", "i2")] {
            assert!(!ready(&pod("log:3", not_yet, 3), &formers));
        }
        assert!(ready(&pod("log:3", ("x2", "log:3", "i3"), 3), &formers));
    }

    #[test]
    fn image_taken_back_before_the_node_saw_it_is_ready_once_the_node_has() {
        let first = pod("log:2", ("x0", "log:1", "i1"), 1);
        let formers = formers_of(&first, "log", &[former("log:1", "x0", "i1")], "log:1");
        assert_eq!(formers, [former("log:2", "", "")]);
        assert!(!ready(&pod("log:1", ("x0", "log:1", "i1"), 1), &formers));
        assert!(ready(&pod("log:1", ("x0", "log:1", "i1"), 3), &formers));
    }

    #[test]
    fn names_of_one_image_are_the_same() {
        for (one, other) in [
            ("a", "docker.io/library/a:latest"),
            ("me/a:1", "docker.io/me/a:1"),
            ("registry:5000/a", "registry:5000/a:latest"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        assert!(!is_same("a:1", "a:2") && !is_same("registry:5000/a", "a"));
    }
}
