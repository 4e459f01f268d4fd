//! Nobody gets an address or a port that another Service has, however many ask at once.

use std::collections::BTreeSet;

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt;
use windlass_apiserver::{ApiServer, Config, Identity, ServiceRange};

async fn send(server: &ApiServer, method: &str, path: String, body: Value) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a request");
    let answer = server
        .in_process(Identity::admin())
        .oneshot(request)
        .await
        .expect("the server answers");
    let code = answer.status().as_u16();
    let bytes = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (code, serde_json::from_slice(&bytes).expect("JSON"))
}

fn services() -> String {
    "/api/v1/namespaces/default/services".to_owned()
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_share_no_address_and_no_port() {
    // A range so small that two random choices often meet.
    let server = ApiServer::new(Config {
        service_range: ServiceRange {
            base: "10.0.0.0".parse().expect("an address"),
            prefix: 24,
        },
        ..Config::default()
    });
    let creates = (0..200).map(|index| {
        let server = server.clone();
        let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
        tokio::spawn(async move {
            send(
                &server,
                "POST",
                services(),
                service(&format!("s{index}"), &spec),
            )
            .await
        })
    });
    let mut addresses = BTreeSet::new();
    let mut ports = BTreeSet::new();
    for create in creates.collect::<Vec<_>>() {
        let (code, service) = create.await.expect("no panic");
        assert_eq!(code, 201, "{service}");
        let spec = &service["spec"];
        assert!(addresses.insert(spec["clusterIP"].to_string()), "{spec}");
        assert!(
            ports.insert(spec["ports"][0]["nodePort"].to_string()),
            "{spec}"
        );
    }
}

#[tokio::test]
async fn a_full_range_says_so_and_a_refused_create_gives_back_what_it_took() {
    let server = ApiServer::new(Config {
        service_range: ServiceRange {
            base: "10.0.0.0".parse().expect("an address"),
            prefix: 29,
        },
        ..Config::default()
    });
    // Of eight addresses the first and the last are nobody's, and one is the kubernetes Service's.
    let spec = || json!({"ports": [{"port": 80}]});
    for index in 0..5 {
        let made = service(&format!("s{index}"), &spec());
        assert_eq!(send(&server, "POST", services(), made).await.0, 201);
        // A name that is taken, and an object that is wrong, leave no address behind.
        let again = service(&format!("s{index}"), &spec());
        let (code, refused) = send(&server, "POST", services(), again).await;
        assert!(code == 409 || index == 4, "{refused}");
        let wrong = service("wrong", &json!({"ports": [{"port": 0}]}));
        assert_ne!(send(&server, "POST", services(), wrong).await.0, 201);
    }
    let (code, refused) = send(&server, "POST", services(), service("more", &spec())).await;
    assert_eq!(code, 500, "{refused}");
    let gone = format!("{}/s2", services());
    assert_eq!(send(&server, "DELETE", gone, json!({})).await.0, 200);
    let (code, made) = send(&server, "POST", services(), service("more", &spec())).await;
    assert_eq!(code, 201, "{made}");
}
