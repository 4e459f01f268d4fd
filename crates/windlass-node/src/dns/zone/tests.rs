use super::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn picture() -> Picture {
    let service = |name: &str, spec: Value| {
        let service = json!({"metadata": {"namespace": "shop", "name": name}, "spec": spec});
        Arc::new(serde_json::from_value(service).expect("a service"))
    };
    let slice = json!({
        "metadata": {"namespace": "shop", "name": "db-1", "labels": {"kubernetes.io/service-name": "db"}},
        "addressType": "IPv4",
        "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": ["10.244.0.9"], "hostname": "db-1", "conditions": {"ready": true}},
            {"addresses": ["10.244.0.8"], "conditions": {"ready": true}},
            {"addresses": ["10.244.0.7"], "hostname": "db-0", "conditions": {"ready": false}},
        ],
    });
    Picture {
        services: vec![
            service(
                "web",
                json!({"clusterIP": "10.96.0.7", "ports": [{"name": "http", "port": 80}]}),
            ),
            service(
                "db",
                json!({"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]}),
            ),
            service(
                "far",
                json!({"type": "ExternalName", "externalName": "example.com"}),
            ),
        ],
        slices: vec![Arc::new(serde_json::from_value(slice).expect("a slice"))],
    }
}

fn addresses(list: &[[u8; 4]]) -> Answer {
    Answer::Addresses(list.iter().map(|ip| (*ip).into()).collect())
}

#[test]
fn what_names_stand_for() {
    let picture = picture();
    let far = "far.shop.svc.cluster.local";
    let cases = [
        ("web.shop.svc.cluster.local", addresses(&[[10, 96, 0, 7]])),
        (
            "db.shop.svc.cluster.local",
            addresses(&[[10, 244, 0, 8], [10, 244, 0, 9]]),
        ),
        (
            "db-1.db.shop.svc.cluster.local",
            addresses(&[[10, 244, 0, 9]]),
        ),
        (
            "10-244-0-8.db.shop.svc.cluster.local",
            addresses(&[[10, 244, 0, 8]]),
        ),
        // Not ready, and not published.
        ("db-0.db.shop.svc.cluster.local", Answer::Unknown),
        (
            "10-244-0-77.shop.pod.cluster.local",
            addresses(&[[10, 244, 0, 77]]),
        ),
        (far, Answer::Alias("example.com".to_owned())),
        ("shop.svc.cluster.local", Answer::Nothing),
        ("cluster.local", Answer::Nothing),
        ("none.shop.svc.cluster.local", Answer::Unknown),
        ("web.none.svc.cluster.local", Answer::Unknown),
        ("example.com", Answer::Unknown),
        ("notcluster.local", Answer::Unknown),
    ];
    for (name, expected) in cases {
        assert_eq!(answer(&picture, name), expected, "{name}");
    }
}

#[test]
fn where_ports_are() {
    let picture = picture();
    assert_eq!(
        answer(&picture, "_http._tcp.web.shop.svc.cluster.local"),
        Answer::Ports(vec![(80, "web.shop.svc.cluster.local".to_owned())])
    );
    assert_eq!(
        answer(&picture, "_sql._tcp.db.shop.svc.cluster.local"),
        Answer::Ports(vec![
            (5432, "db-1.db.shop.svc.cluster.local".to_owned()),
            (5432, "10-244-0-8.db.shop.svc.cluster.local".to_owned()),
        ])
    );
    assert_eq!(
        answer(&picture, "_sql._udp.db.shop.svc.cluster.local"),
        Answer::Unknown
    );
}

#[test]
fn the_name_of_an_address() {
    let picture = picture();
    let name = |last| name_of(&picture, Ipv4Addr::new(10, 244, 0, last));
    assert_eq!(name(9).as_deref(), Some("db-1.db.shop.svc.cluster.local"));
    assert_eq!(name(77), None);
    assert_eq!(
        name_of(&picture, Ipv4Addr::new(10, 96, 0, 7)).as_deref(),
        Some("web.shop.svc.cluster.local")
    );
}
