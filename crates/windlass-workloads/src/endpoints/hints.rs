//! Hints: for whom an endpoint is near, when the Service asks that traffic stays near.
//!
//! Only `trafficDistribution` is followed. The older annotation, which deals endpoints out to zones
//! by their share of processors, is not: with it there are no hints, as in a cluster whose zones
//! cannot be told apart.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone};

/// How near traffic shall stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Near {
    Anywhere,
    Zone,
    Node,
}

/// What the Service asks for.
pub(super) fn asked(service: &Service) -> Near {
    let annotations = service.metadata.annotations.as_ref();
    let annotation = annotations.and_then(|all| {
        all.get("service.kubernetes.io/topology-aware-hints")
            .or_else(|| all.get("service.kubernetes.io/topology-mode"))
    });
    if annotation.is_some_and(|mode| matches!(mode.as_str(), "Auto" | "auto")) {
        return Near::Anywhere;
    }
    let spec = service.spec.as_ref();
    match spec.and_then(|spec| spec.traffic_distribution.as_deref()) {
        Some("PreferClose" | "PreferSameZone") => Near::Zone,
        Some("PreferSameNode") => Near::Node,
        _ => Near::Anywhere,
    }
}

/// Gives each endpoint its hint; says whether one changed. While endpoints are not ready their
/// hints stay as they are.
pub(super) fn give(slice: &mut EndpointSlice, near: Near) -> bool {
    let mut changed = false;
    for endpoint in slice.endpoints.iter_mut().flatten() {
        let conditions = endpoint.conditions.as_ref();
        let ready = conditions.and_then(|conditions| conditions.ready) == Some(true);
        let wanted = wanted(endpoint, near);
        if (near == Near::Anywhere || ready) && endpoint.hints != wanted {
            endpoint.hints = wanted;
            changed = true;
        }
    }
    changed
}

fn wanted(endpoint: &Endpoint, near: Near) -> Option<EndpointHints> {
    let zone = endpoint.zone.clone().filter(|_| near != Near::Anywhere);
    let node = endpoint.node_name.clone().filter(|_| near == Near::Node);
    let hints = EndpointHints {
        for_zones: zone.map(|name| vec![ForZone { name }]),
        for_nodes: node.map(|name| vec![ForNode { name }]),
    };
    (hints != EndpointHints::default()).then_some(hints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_ready_is_near_its_own_zone_and_node() {
        let mut slice: EndpointSlice = serde_json::from_value(json!({
            "metadata": {}, "addressType": "IPv4", "endpoints": [
                {"addresses": ["10.0.0.1"], "zone": "a", "nodeName": "n", "conditions": {"ready": true}},
                {"addresses": ["10.0.0.2"], "zone": "a", "nodeName": "n", "conditions": {"ready": false}},
            ],
        }))
        .unwrap();
        assert!(!give(&mut slice, Near::Anywhere));
        assert!(give(&mut slice, Near::Node));
        let hints = |slice: &EndpointSlice| {
            let hints = slice
                .endpoints
                .iter()
                .flatten()
                .map(|endpoint| &endpoint.hints);
            serde_json::to_value(hints.collect::<Vec<_>>()).unwrap()
        };
        let near = json!({"forZones": [{"name": "a"}], "forNodes": [{"name": "n"}]});
        assert_eq!(hints(&slice), json!([near, null]));
        assert!(!give(&mut slice, Near::Node));
        assert!(give(&mut slice, Near::Anywhere));
        assert_eq!(hints(&slice), json!([null, null]));
    }
}
