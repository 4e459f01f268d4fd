//! Collisions of generated names, which only a chosen chance brings about.

use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random};

/// A server whose names are drawn from this seed.
fn client(seed: u64) -> Client {
    let server = ApiServer::new(Config {
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        random: Random::seeded(seed),
        ..Config::default()
    });
    Client::new(server.in_process(Identity::admin()), "default")
}

async fn create(client: &Client, metadata: Value) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(Body::from(object.to_string().into_bytes()))
        .unwrap();
    let answer = client.send(request).await.unwrap().into_body();
    serde_json::from_slice(&answer.collect().await.unwrap().to_bytes()).unwrap()
}

/// The names that a server of this seed draws, one after the other: each create draws a name, and a
/// uid after it, unless the name is taken.
async fn drawn(seed: u64, taken: &[String]) -> Value {
    let client = client(seed);
    for name in taken {
        // A dry run would draw; a create with a name of its own draws a uid only.
        let object = create(&client, json!({"name": name})).await;
        assert_eq!(object["metadata"]["name"], name.as_str());
    }
    create(&client, json!({"generateName": "web-"})).await
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_is_drawn_again_up_to_eight_times() {
    let name = |object: &Value| {
        object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    // Creates draw uids as well, so each round finds the names anew, with as many objects as there
    // will be: placeholders stand in for the names that are not known yet.
    let mut taken: Vec<String> = (0..8).map(|n| format!("other-{n}")).collect();
    for tries in 0..8 {
        let object = drawn(3, &taken).await;
        let next = name(&object);
        assert!(
            next.starts_with("web-"),
            "after {tries} collisions: {object}"
        );
        assert!(!taken.contains(&next));
        taken[tries] = next;
    }
    let refused = drawn(3, &taken).await;
    assert_eq!(refused["reason"], "AlreadyExists", "{refused}");
    assert_eq!(refused["code"], 409);
    assert_eq!(refused["details"]["name"], taken[7].as_str());
}
