//! What pods use, as `metrics.k8s.io` says it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;
use windlass::Result;

use crate::item::{Amount, milli, whole};

const PATH: &str = "/apis/metrics.k8s.io/v1beta1/pods";
const NOT_FOUND: u16 = 404;
/// What the API server answers for a metrics server that is not there.
const UNAVAILABLE: u16 = 503;

#[derive(Deserialize)]
struct List {
    items: Vec<PodMetrics>,
}

#[derive(Deserialize)]
struct PodMetrics {
    metadata: Metadata,
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: String,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    usage: BTreeMap<String, Quantity>,
}

/// What each pod uses, by namespace and name; none if nothing measures it.
pub(crate) async fn read(client: &Client) -> Result<Option<BTreeMap<(String, String), Amount>>> {
    let request = Request::new(PATH).list(&ListParams::default());
    let request = request.map_err(kube::Error::BuildRequest)?;
    let list: List = match client.request(request).await {
        Ok(list) => list,
        Err(kube::Error::Api(status)) if [NOT_FOUND, UNAVAILABLE].contains(&status.code) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let pods = list.items.into_iter().map(|pod| {
        let mut used = Amount::default();
        for container in &pod.containers {
            used.cpu += container.usage.get("cpu").map_or(0, milli);
            used.memory += container.usage.get("memory").map_or(0, whole);
        }
        ((pod.metadata.namespace, pod.metadata.name), used)
    });
    Ok(Some(pods.collect()))
}
