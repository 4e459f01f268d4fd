//! Objects that are owned by thousands, and patches of thousands of operations.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::{APPLY, Client, DEPLOYMENTS, JSON, JSON_PATCH, MAPS, MERGE};

fn map_of(data: &Map<String, Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

#[tokio::test]
async fn map_that_thousands_own_costs_its_size() {
    let mut client = Client::new().await;
    let data = |value: &str| -> Map<String, Value> {
        (0..2000).map(|n| (format!("k{n}"), value.into())).collect()
    };
    let managers: Vec<Value> = (0..2000)
        .map(|n| {
            let operation = if n % 2 == 0 { "Apply" } else { "Update" };
            json!({
                "manager": format!("m{n}"), "operation": operation, "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {format!("f:k{n}"): {}}},
            })
        })
        .collect();
    let mut owned = map_of(&data("a"));
    owned["metadata"]["managedFields"] = managers.into();
    client.works(Method::POST, MAPS, JSON, owned).await;
    let path = format!("{MAPS}/m");
    let applied = |manager: &str| format!("{path}?fieldManager={manager}");
    let other = map_of(&data("b"));
    let (code, _) = client
        .send(Method::PATCH, &applied("x"), APPLY, other.clone())
        .await;
    assert_eq!(code, StatusCode::CONFLICT);
    let forced = format!("{}&force=true", applied("x"));
    client.works(Method::PATCH, &forced, APPLY, other).await;
    let change = json!({"data": data("c")});
    client.works(Method::PATCH, &path, MERGE, change).await;
    client.works(Method::DELETE, &path, JSON, Value::Null).await;
}

#[tokio::test]
async fn thousands_of_operations_on_a_long_list_cost_no_more_than_is_allowed() {
    let mut client = Client::new().await;
    let finalizers: Vec<String> = (0..40_000).map(|n| format!("x.io/f{n}")).collect();
    let mut map = map_of(&Map::new());
    map["metadata"]["finalizers"] = finalizers.into();
    client.works(Method::POST, MAPS, JSON, map).await;
    let path = format!("{MAPS}/m");
    let first = "/metadata/finalizers/0";
    for operation in [
        json!({"op": "add", "path": first, "value": "x.io/new"}),
        json!({"op": "move", "from": first, "path": "/metadata/finalizers/-"}),
    ] {
        let operations = vec![operation; 9000];
        let (code, _) = client
            .send(Method::PATCH, &path, JSON_PATCH, operations.into())
            .await;
        assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
    }
}

/// A Deployment that fits by itself, and with the record of its owners does not.
fn deployment_of_many_variables(value: &str) -> Value {
    let env: Vec<Value> = (0..30_000)
        .map(|n| json!({"name": format!("N{n}"), "value": value}))
        .collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i", "env": env}]},
            },
        },
    })
}

#[tokio::test]
async fn owners_that_do_not_fit_are_forgotten_by_writes_and_refused_to_applies() {
    let mut client = Client::new().await;
    let object = deployment_of_many_variables("a");
    let made = client
        .works(Method::POST, DEPLOYMENTS, JSON, object.clone())
        .await;
    assert_eq!(made["metadata"]["managedFields"], Value::Null);
    let path = format!("{DEPLOYMENTS}/d");
    let changed = client
        .replace(&path, deployment_of_many_variables("b"))
        .await;
    assert_eq!(changed.0, StatusCode::OK);
    assert_eq!(changed.1["metadata"]["managedFields"], Value::Null);
    let applied = format!("{path}?fieldManager=a&force=true");
    let (code, refused) = client
        .send(Method::PATCH, &applied, APPLY, object.clone())
        .await;
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(refused["message"], "etcdserver: request is too large");
    // A dry run stores nothing, so nothing is too large for it.
    let shown = format!("{applied}&dryRun=All");
    let (code, shown) = client.send(Method::PATCH, &shown, APPLY, object).await;
    assert_eq!(code, StatusCode::OK);
    assert!(shown["metadata"]["managedFields"].is_array());
}

#[tokio::test]
async fn owners_that_make_an_object_too_large_are_forgotten() {
    let mut client = Client::new().await;
    let data: Map<String, Value> = (0..40_000)
        .map(|n| (format!("k{n}"), "a".repeat(20).into()))
        .collect();
    let made = client.works(Method::POST, MAPS, JSON, map_of(&data)).await;
    assert_eq!(made["metadata"]["managedFields"], Value::Null);
}
