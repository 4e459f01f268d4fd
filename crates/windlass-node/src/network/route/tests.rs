use super::*;
use serde_json::json;
use std::sync::Arc;

/// A picture of one Service with two ports and a slice in which one endpoint is not ready.
pub(crate) fn picture() -> Picture {
    let service = json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {
            "clusterIP": "10.96.0.7", "type": "NodePort",
            "ports": [
                {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
                {"name": "names", "port": 53, "protocol": "UDP"},
                {"name": "stream", "port": 9, "protocol": "SCTP"},
            ],
        },
    });
    let headless = json!({
        "metadata": {"namespace": "shop", "name": "none"},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
    });
    let slice = json!({
        "metadata": {
            "namespace": "shop", "name": "web-1",
            "labels": {SERVICE_NAME: "web"},
        },
        "addressType": "IPv4",
        "ports": [
            {"name": "http", "port": 8080, "protocol": "TCP"},
            {"name": "names", "port": 5353, "protocol": "UDP"},
        ],
        "endpoints": [
            {"addresses": ["10.244.0.9"], "conditions": {"ready": true}},
            {"addresses": ["10.244.0.8"]},
            {"addresses": ["10.244.0.7"], "conditions": {"ready": false}},
        ],
    });
    let read = |value| Arc::new(serde_json::from_value(value).expect("a service"));
    Picture {
        services: vec![read(service), read(headless)],
        slices: vec![Arc::new(serde_json::from_value(slice).expect("a slice"))],
    }
}

#[test]
fn only_ready_endpoints_are_reached_by_the_port_of_that_name() {
    let routes = routes(&picture());
    let shown: Vec<String> = routes
        .iter()
        .map(|route| {
            format!(
                "{} {} {} {:?} {:?}",
                route.address, route.protocol, route.port, route.node_port, route.endpoints
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "10.96.0.7 tcp 80 Some(30080) [(10.244.0.8, 8080), (10.244.0.9, 8080)]",
            "10.96.0.7 udp 53 None [(10.244.0.8, 5353), (10.244.0.9, 5353)]",
        ]
    );
}

#[test]
fn affinity_has_kubernetes_default_time() {
    let mut picture = picture();
    let service = Arc::make_mut(&mut picture.services[0]);
    let spec = service.spec.as_mut().expect("a spec");
    spec.session_affinity = Some("ClientIP".to_owned());
    assert_eq!(routes(&picture)[0].affinity, Some(10_800));
}
