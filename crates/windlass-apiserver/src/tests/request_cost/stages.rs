//! Bodies as large as there may be, and the stages that small ones do not show: defaults,
//! conversion between versions, every form of an answer, protobuf.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use rustls::pki_types::CertificateDer;
use serde_json::{Map, Value, json};

use super::{
    APPLY, CRDS, Client, DEPLOYMENTS, JSON, JSON_PATCH, MAPS, MERGE, STRATEGIC, THINGS, deep,
    definition, thing,
};
use crate::Config;
use crate::clock::Clock;
use crate::webhook::{LocalService, LocalWebhooks, Reply};

/// How large what is sent is, in bytes: nearly all that a body may have.
const LARGE: usize = 3 * 1024 * 1024 - 64 * 1024;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A schema with something for every stage to do at each item.
fn busy_schema() -> Value {
    json!({"type": "object", "properties": {
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string", "pattern": "^[a-z0-9]+$", "maxLength": 300},
                "v": {"type": "integer", "maximum": 5, "default": 1},
                "object": {
                    "type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true,
                },
                "none": {"type": "string"},
                "given": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": true}}},
            }},
        },
        "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }})
}

/// A specification of about so many bytes, in which everything differs for another `value`.
fn busy(bytes: usize, value: i32) -> Value {
    busy_with(bytes, value, &json!({}))
}

/// The same with more in every item: what is applied may have nothing that is unknown.
fn strange(bytes: usize, value: i32) -> Value {
    let object =
        json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}}});
    let more = json!({"none": null, "odd": "x".repeat(30), "object": object});
    busy_with(bytes, value, &more)
}

fn busy_with(bytes: usize, value: i32, more: &Value) -> Value {
    let item = |n: usize| {
        let mut item = json!({"k": format!("k{n}"), "v": value});
        let fields = more.as_object().into_iter().flatten();
        item.as_object_mut()
            .unwrap()
            .extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        item
    };
    let each = item(10_000).to_string().len() + "m10000".len() + 60;
    let map: Map<String, Value> = (0..bytes / each)
        .map(|n| (format!("m{n}"), format!("{value}{}", "y".repeat(40)).into()))
        .collect();
    let keyed: Vec<Value> = (0..bytes / each).map(item).collect();
    json!({"keyed": keyed, "map": map, "free": deep(60, &json!(value))})
}

/// Every verb that changes what is at `path`, as dry runs: there is no other way for an object to
/// be larger than what may be stored.
async fn every_dry_run(client: &mut Client, path: &str, object: &Value, applied: &Value) {
    let changed = "spec";
    let (collection, _) = path.rsplit_once('/').unwrap();
    let dry = |path: &str| format!("{path}?dryRun=All");
    let mut other = object.clone();
    other["metadata"]["name"] = "other".into();
    client
        .works(Method::POST, &dry(collection), JSON, other)
        .await;
    let replaced = client.replace_at(&dry(path), path, object.clone()).await;
    assert_eq!(replaced.0, StatusCode::OK);
    let part = json!({changed: object[changed]});
    client
        .works(Method::PATCH, &dry(path), MERGE, part.clone())
        .await;
    let operation =
        json!({"op": "replace", "path": format!("/{changed}"), "value": object[changed]});
    let operations = vec![operation];
    client
        .works(Method::PATCH, &dry(path), JSON_PATCH, operations.into())
        .await;
    let applying = format!("{}&fieldManager=a&force=true", dry(path));
    client
        .works(Method::PATCH, &applying, APPLY, applied.clone())
        .await;
    if !path.contains("x.io") {
        client
            .works(Method::PATCH, &dry(path), STRATEGIC, part)
            .await;
    }
}

#[tokio::test]
async fn objects_of_three_mib_cost_their_size_in_every_verb() {
    let mut client = Client::new().await;
    let schema = busy_schema();
    client
        .works(Method::POST, CRDS, JSON, definition(&schema))
        .await;
    let small = thing(&busy(1000, 1));
    client.works(Method::POST, THINGS, JSON, small).await;
    let (large, known) = (thing(&strange(LARGE, 2)), thing(&busy(LARGE, 2)));
    every_dry_run(&mut client, &format!("{THINGS}/a"), &large, &known).await;

    let env = |bytes: usize| -> Vec<Value> {
        let of = |n| json!({"name": format!("N{n}"), "value": "x".repeat(60)});
        (0..bytes / 100).map(of).collect()
    };
    let deployment = |env: Vec<Value>| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i", "env": env}]},
            }},
        })
    };
    let small = deployment(env(1000));
    client.works(Method::POST, DEPLOYMENTS, JSON, small).await;
    let path = format!("{DEPLOYMENTS}/d");
    let large = deployment(env(LARGE));
    every_dry_run(&mut client, &path, &large, &large).await;
}

#[tokio::test]
async fn object_of_three_mib_that_is_stored_is_refused_after_its_size() {
    let mut client = Client::new().await;
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    client
        .works(Method::POST, CRDS, JSON, definition(&free))
        .await;
    let text = json!("x".repeat(LARGE / 70));
    let large = thing(&deep(60, &text));
    let (code, answer) = client.send(Method::POST, THINGS, JSON, large).await;
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer["message"], "etcdserver: request is too large");
}

#[tokio::test]
async fn defaults_that_multiply_a_small_body_are_refused() {
    let mut client = Client::new().await;
    let schema = json!({"type": "object", "properties": {"list": {
        "type": "array", "items": {"type": "object", "properties": {
            "large": {"type": "string", "default": "x".repeat(100_000)},
        }},
    }}});
    client
        .works(Method::POST, CRDS, JSON, definition(&schema))
        .await;
    let few = thing(&json!({"list": vec![json!({}); 10]}));
    client.works(Method::POST, THINGS, JSON, few).await;
    let many = json!({"list": vec![json!({}); LARGE / 3]});
    let path = format!("{THINGS}/a");
    let applied = format!("{path}?fieldManager=a&force=true");
    for (method, path, media_type, body) in [
        (Method::POST, THINGS, JSON, thing(&many)),
        (Method::PUT, &*path, JSON, thing(&many)),
        (Method::PATCH, &*path, MERGE, json!({"spec": many})),
        (Method::PATCH, &*applied, APPLY, thing(&many)),
    ] {
        let (code, answer) = client.send(method, path, media_type, body).await;
        let said = answer["message"].as_str().unwrap_or_default();
        assert!(!code.is_success(), "{media_type}: {code}");
        assert!(said.contains("the defaults of its schema"), "{said}");
    }
}

/// A definition of a second version, which knows less.
fn of_two_versions(conversion: &Value) -> Value {
    let mut both = definition(&busy_schema());
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    let properties = "/schema/openAPIV3Schema/properties/spec/properties/keyed/items/properties";
    let known = second.pointer_mut(properties).unwrap();
    known.as_object_mut().unwrap().remove("object");
    both["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(second);
    both["spec"]["conversion"] = conversion.clone();
    both
}

/// Every verb in the version that is not the stored one.
async fn every_verb_of_the_other_version(client: &mut Client, conversion: &Value) {
    client
        .works(Method::POST, CRDS, JSON, of_two_versions(conversion))
        .await;
    let things = THINGS.replace("v1", "v2");
    let mut object = thing(&busy(100_000, 1));
    object["apiVersion"] = "x.io/v2".into();
    let change = json!({"spec": busy(100_000, 2)});
    client.every_verb(&things, &object, &change).await;
}

#[tokio::test]
async fn conversion_between_versions_costs_the_size_of_the_object() {
    let mut client = Client::new().await;
    every_verb_of_the_other_version(&mut client, &json!({"strategy": "None"})).await;
}

/// Converts by naming the version.
struct Renames;

impl LocalService for Renames {
    fn certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        None
    }

    fn post(&self, _: String, body: Bytes) -> Pin<Box<dyn Future<Output = Reply> + Send>> {
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        let wanted = review["request"]["desiredAPIVersion"].take();
        let mut objects = review["request"]["objects"].take();
        for object in objects.as_array_mut().unwrap() {
            object["apiVersion"] = wanted.clone();
        }
        review["response"] = json!({
            "uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
        });
        Box::pin(ready(Reply {
            code: StatusCode::OK,
            content_type: JSON.into(),
            body: review.to_string().into(),
        }))
    }
}

#[tokio::test]
async fn conversion_by_a_webhook_costs_the_size_of_the_object() {
    let webhooks = LocalWebhooks::new(Clock::default());
    let _serving = webhooks.serve("127.0.0.1", 9443, Arc::new(Renames));
    let config = Config {
        webhooks: Arc::new(webhooks),
        ..Config::default()
    };
    let mut client = Client::with(config).await;
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:9443/"},
    }});
    every_verb_of_the_other_version(&mut client, &conversion).await;
}

#[tokio::test(start_paused = true)]
async fn every_form_of_an_answer_costs_the_size_of_what_is_stored() {
    let mut client = Client::new().await;
    let mut columns = definition(&busy_schema());
    columns["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "all", "type": "string", "jsonPath": ".spec.keyed[*].k"},
        {"name": "one", "type": "string", "jsonPath": ".spec.map"},
    ]);
    client.works(Method::POST, CRDS, JSON, columns).await;
    for n in 0..5 {
        let mut object = thing(&busy(200_000, n));
        object["metadata"]["name"] = format!("n{n}").into();
        object["metadata"]["annotations"] = json!({"large": "x".repeat(100_000)});
        client.works(Method::POST, THINGS, JSON, object).await;
    }
    let from_start = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=5";
    let one = format!("{THINGS}/n1");
    for (accept, query) in [
        (JSON, ""),
        ("application/yaml", ""),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", "?"),
        (
            "application/json;as=Table;g=meta.k8s.io;v=v1",
            "?includeObject=Object",
        ),
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            "",
        ),
    ] {
        client.accept = accept;
        for path in [THINGS, &*one] {
            client
                .works(Method::GET, &format!("{path}{query}"), JSON, Value::Null)
                .await;
        }
        if accept != "application/yaml" {
            let watch = format!("{THINGS}?{from_start}");
            client.works(Method::GET, &watch, JSON, Value::Null).await;
        }
    }
}

/// A field of a protobuf message that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    out.extend(length.to_le_bytes().first());
    out.extend_from_slice(bytes);
    out
}

#[tokio::test]
async fn protobuf_of_three_mib_costs_its_size() {
    let mut client = Client::new().await;
    let mut map = field(1, &field(1, b"m"));
    for n in 0..LARGE / 100 {
        let value = "x".repeat(80);
        let entry = [
            field(1, format!("k{n}").as_bytes()),
            field(2, value.as_bytes()),
        ];
        map.extend(field(2, &entry.concat()));
    }
    let kind = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    let body = [b"k8s\0".to_vec(), field(1, &kind), field(2, &map)].concat();
    let path = format!("{MAPS}?dryRun=All");
    let (code, answer) = client.send_bytes(Method::POST, &path, PROTOBUF, body).await;
    // More than a ConfigMap may hold, which is found when all of it has been read.
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
}
