//! What a set leaves out and its schema cannot know: what depends on other fields.

use crate::kind::{BEFORE, SidecarSet};

/// Sets the defaults of a set.
pub(crate) fn default(set: &mut SidecarSet) {
    let spec = &mut set.spec;
    for sidecar in &mut spec.containers {
        sidecar.pod_inject_policy.get_or_insert(BEFORE.to_owned());
    }
    for sidecar in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        let latest = sidecar.container.image.as_deref().is_some_and(is_latest);
        let policy = if latest { "Always" } else { "IfNotPresent" };
        let field = &mut sidecar.container.image_pull_policy;
        field.get_or_insert(policy.to_owned());
    }
}

/// Whether an image is the latest, by its tag or for lack of one.
fn is_latest(image: &str) -> bool {
    // A colon before a slash is that of the registry's port.
    let name = image.rsplit('/').next().unwrap_or(image);
    let tag = name.split_once(':').map(|(_, tag)| tag);
    !image.contains('@') && tag.is_none_or(|tag| tag == "latest")
}

#[cfg(test)]
mod tests {
    use super::*;

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
