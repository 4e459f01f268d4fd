//! What to try the operator with: a set that puts a memcached beside whatever a pod with its label
//! runs, and a Deployment of such pods.

use k8s_openapi::api::apps::v1::Deployment;
use windlass::object;

use crate::kind::{ROLLING_UPDATE, SidecarSet};

const NAME: &str = "sidecarset-sample";
const IMAGE: &str = "memcached:1.6.6";

/// The set.
pub(crate) fn set() -> SidecarSet {
    object!(SidecarSet {
        metadata: { name: NAME },
        spec: {
            selector: { match_labels: { "app": NAME } },
            // The pod has one address: its own memcached has the usual port.
            containers: [{ container: { name: "cache", image: IMAGE, args: ["-p", "11212"] } }],
            update_strategy: { of: ROLLING_UPDATE, max_unavailable: 1 },
        },
    })
}

/// The Deployment.
pub(crate) fn deployment() -> Deployment {
    object!(Deployment {
        metadata: { name: NAME },
        spec: {
            replicas: 2,
            selector: { match_labels: { "app": NAME } },
            template: {
                metadata: { labels: { "app": NAME } },
                spec: { containers: [{ name: "main", image: IMAGE }] },
            },
        },
    })
}
