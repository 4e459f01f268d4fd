//! What clients of a server see while the disk is slow.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tower::Service as _;

use serde_json::{Value, json};
use windlass_store::testing::Disk;

use crate::Identity;
use crate::server::bootstrap;
use crate::server::{ApiServer, Config, InProcess};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn send(client: &InProcess, method: &str, path: &str, body: &Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let answer = client.clone().call(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap();
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

/// A list once showed objects that a power cut would have taken back, at a version that would have
/// been given to something else.
#[tokio::test]
async fn a_list_shows_no_write_that_is_not_durable_yet() {
    let (store, mut disk) = Disk::empty();
    let server =
        ApiServer::with_store(Config::default(), store, crate::server::bootstrap::policy());
    bootstrap::run(&server);
    disk.sync();
    let client = server.in_process(Identity::admin());
    let before = send(&client, "GET", PATH, &Value::Null).await;
    let object = json!({"metadata": {"name": "a"}});
    let mut create = std::pin::pin!(send(&client, "POST", PATH, &object));
    assert!(futures::poll!(&mut create).is_pending());
    assert_eq!(send(&client, "GET", PATH, &Value::Null).await, before);
    let one = send(&client, "GET", &format!("{PATH}/a"), &Value::Null).await;
    assert_eq!(one["code"], 404);
    disk.sync();
    let created = create.await;
    let after = send(&client, "GET", PATH, &Value::Null).await;
    assert_eq!(after["items"][0]["metadata"], created["metadata"]);
    assert_eq!(
        after["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
}
