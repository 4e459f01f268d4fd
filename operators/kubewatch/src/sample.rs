//! What to try the operator with.

use windlass::object;

use crate::config::Watch;

/// Posts what happens to deployments and pods to a server beside it.
pub(crate) fn watch() -> Watch {
    object!(Watch {
        metadata: { name: "kubewatch-sample" },
        spec: {
            handler: { webhook: { url: "http://127.0.0.1:8080/" } },
            resource: { deployment: true, pod: true },
        },
    })
}
