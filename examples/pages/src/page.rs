//! A Page: a text, and the web server that shows it.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Observed, hash_of, kind::Labels, labels, name_within, object};

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "web.example.com",
    version = "v1",
    kind = "Page",
    namespaced,
    status = "PageStatus",
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#
)]
pub struct PageSpec {
    /// The text of the page.
    pub text: String,
    /// How many servers show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 50))]
    pub replicas: Option<i32>,
    /// Whether a Service makes it reachable.
    #[serde(default)]
    pub public: bool,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageStatus {
    /// How many servers are ready.
    #[serde(default)]
    pub ready: i32,
    /// The generation that all of this is about; kept by the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Available, Progressing and Degraded; kept by the framework.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// The name of what belongs to a page: never too long, however long the page's own name is.
fn name_of(page: &Page, what: &str) -> String {
    name_within(63, [page.name_any().as_str(), what])
}

fn labels_of(page: &Page) -> Labels {
    labels([("page", name_within(63, [page.name_any().as_str()]))])
}

/// The text, where the server finds it.
pub(crate) fn content(page: &Page) -> ConfigMap {
    object!(ConfigMap {
        metadata: { name: name_of(page, "content") },
        data: { "index.html": &page.spec.text },
    })
}

/// The server. Its pods are replaced when the text changes: the hash of it is an annotation.
pub(crate) fn server(page: &Page) -> Deployment {
    let labels = labels_of(page);
    object!(Deployment {
        metadata: { name: name_of(page, "server") },
        spec: {
            replicas: page.spec.replicas.unwrap_or(1),
            selector: { match_labels: labels.clone() },
            template: {
                metadata: {
                    labels: labels,
                    annotations: { "web.example.com/content": hash_of(&page.spec.text) },
                },
                spec: {
                    containers: [{
                        name: "web",
                        image: "nginx:1.29",
                        ports: [{ container_port: 80 }],
                        volume_mounts: [{ name: "content", mount_path: "/usr/share/nginx/html" }],
                    }],
                    volumes: [{ name: "content", config_map: { name: name_of(page, "content") } }],
                },
            },
        },
    })
}

/// A name to reach it by, if it is public.
pub(crate) fn service(page: &Page) -> Option<Service> {
    page.spec.public.then(|| {
        object!(Service {
            metadata: { name: name_of(page, "page") },
            spec: { selector: labels_of(page), ports: [{ port: 80 }] },
        })
    })
}

/// What runs.
pub(crate) fn status(_: &Page, observed: &Observed) -> PageStatus {
    let server = observed.owned::<Deployment>().next();
    let ready = server.and_then(|server| server.status.as_ref()?.ready_replicas);
    PageStatus {
        ready: ready.unwrap_or(0),
        ..PageStatus::default()
    }
}
