//! `/openapi/v2` beside what the real server says there, noted in `real.json` by `make openapi`.

use std::collections::BTreeMap;

use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use tower::ServiceExt;
use windlass_apiserver::{ApiServer, Config, Identity};

const REAL: &str = include_str!("real.json");
const DEFINITION: &str = include_str!("definition.json");

/// Paths of the real server that ours does not serve, by how they end or begin.
const NOT_SERVED: &[&str] = &[
    "/attach",
    "/exec",
    "/portforward",
    "/ephemeralcontainers",
    "/eviction",
    "/resize",
    "/approval",
    "/bindings",
    "/componentstatuses",
    "/componentstatuses/{name}",
];

async fn send(server: &ApiServer, request: http::request::Builder, body: &str) -> (u16, Vec<u8>) {
    let request = request.body(body.to_owned()).expect("a request");
    let service = server.in_process(Identity::admin());
    let answer = service.oneshot(request).await.expect("it answers");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a whole body");
    (code, body.to_bytes().to_vec())
}

/// Types of the real server that only what ours does not serve has.
const NOT_KNOWN: &[&str] = &[
    "io.k8s.api.core.v1.ComponentStatusList",
    "io.k8s.apimachinery.pkg.version.Info",
];

/// Everything but texts, and what the table of facts does not have; lists in no order sorted.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, value)| match key.as_str() {
                "description" | "x-kubernetes-unions" => !(value.is_string() || value.is_array()),
                "x-kubernetes-group-version-kind" => {
                    value.as_array().is_none_or(|kinds| kinds.len() == 1)
                }
                _ => true,
            })
            .map(|(key, value)| (key.clone(), in_order(key, plain(value))))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

fn in_order(key: &str, mut value: Value) -> Value {
    if let (Value::Array(items), "required" | "enum") = (&mut value, key) {
        items.sort_by_key(Value::to_string);
    }
    value
}

/// One text per value: keys in order, no spaces.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            let entries: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", json!(key), canonical(value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

fn digest(value: &Value) -> String {
    let text = canonical(&plain(value));
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref()[..4]
        .iter()
        .fold(String::new(), |out, byte| format!("{out}{byte:02x}"))
}

/// A digest of the descriptions of a type and of its fields, but those that list what a field may
/// hold: `k8s-openapi` leaves that list out. The texts themselves are Kubernetes', and not in this
/// repository.
fn digest_of_texts(schema: &Value) -> String {
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none);
    let mut texts = Map::new();
    for (name, field) in fields {
        let lists = field.get("enum").is_some() || field["items"].get("enum").is_some();
        if let (Some(text), false) = (field.get("description"), lists) {
            texts.insert(name.clone(), text.clone());
        }
    }
    let own = schema.get("description").cloned();
    texts.insert(String::new(), own.unwrap_or_else(|| "".into()));
    let text = canonical(&texts.into());
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref()[..4]
        .iter()
        .fold(String::new(), |out, byte| format!("{out}{byte:02x}"))
}

async fn documents() -> (Value, Value) {
    let server = ApiServer::new(Config::default());
    let create = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/json");
    let (code, body) = send(&server, create, DEFINITION).await;
    assert_eq!(code, 201, "{}", String::from_utf8_lossy(&body));
    // A definition is served once it is established, a moment later.
    for _ in 0..100 {
        let (code, body) = send(&server, http::Request::get("/openapi/v2"), "").await;
        assert_eq!(code, 200);
        let ours: Value = serde_json::from_slice(&body).expect("JSON");
        if ours["definitions"]
            .get("com.example.openapi.v1.Gadget")
            .is_some()
        {
            return (ours, serde_json::from_str(REAL).expect("JSON"));
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the definition is never served");
}

#[tokio::test(start_paused = true)]
async fn the_definitions_are_those_of_the_real_server() {
    let (ours, real) = documents().await;
    let mut wrong = Vec::new();
    let known = ours["definitions"].as_object().expect("definitions");
    for (name, wanted) in real["definitions"].as_object().expect("definitions") {
        match known.get(name) {
            None if NOT_KNOWN.contains(&name.as_str()) => {}
            None => wrong.push(format!("{name} is missing")),
            Some(schema) if wanted != &json!(digest(schema)) => {
                wrong.push(format!("{name} differs: {}", canonical(schema)));
            }
            Some(_) => {}
        }
    }
    for name in known
        .keys()
        .filter(|name| !name.starts_with("com.example."))
    {
        if real["definitions"].get(name).is_none() {
            wrong.push(format!("{name} is not there on the real server"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test(start_paused = true)]
async fn the_definitions_of_a_crd_are_those_of_the_real_server() {
    let (ours, real) = documents().await;
    for (name, wanted) in real["custom"].as_object().expect("definitions") {
        let found = plain(&ours["definitions"][name]);
        assert_eq!(canonical(&found), canonical(wanted), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_path_has_the_operations_of_the_real_server() {
    let (ours, real) = documents().await;
    let found: BTreeMap<&String, String> = ours["paths"]
        .as_object()
        .expect("paths")
        .iter()
        .map(|(path, item)| {
            let methods = item.as_object().expect("methods").iter();
            let methods = methods.filter(|(_, operation)| operation.is_object());
            let mut operations: Vec<String> = methods
                .map(|(method, operation)| {
                    format!(
                        "{method} {}",
                        operation["x-kubernetes-action"]
                            .as_str()
                            .unwrap_or_default()
                    )
                })
                .collect();
            operations.sort();
            (path, operations.join(", "))
        })
        .collect();
    let real = real["paths"].as_object().expect("paths");
    let mut wrong = Vec::new();
    for (path, operations) in &found {
        if real.get(*path) != Some(&json!(operations)) {
            wrong.push(format!(
                "{path}: ours {operations}, real {:?}",
                real.get(*path)
            ));
        }
    }
    for path in real.keys().filter(|path| !found.contains_key(path)) {
        let resource = path.trim_start_matches("/api/v1").starts_with('/')
            && !path.ends_with('/')
            && !path.starts_with("/.well-known")
            && !path.starts_with("/openid")
            && !path.starts_with("/logs");
        if resource && !NOT_SERVED.iter().any(|end| path.ends_with(end)) {
            wrong.push(format!("{path} is missing"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test(start_paused = true)]
async fn the_form_is_negotiated() {
    let server = ApiServer::new(Config::default());
    let get = |accept: &str| http::Request::get("/openapi/v2").header("accept", accept);
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let (code, body) = send(&server, get(protobuf), "").await;
    // The first field: the version of the form.
    assert_eq!((code, body.get(..5)), (200, Some(&b"\x0a\x032.0"[..])));
    assert_eq!(send(&server, get("application/yaml"), "").await.0, 406);
    let (code, body) = send(&server, get("*/*"), "").await;
    assert_eq!((code, body.first()), (200, Some(&b'{')));
}

#[tokio::test(start_paused = true)]
async fn types_and_fields_are_described_as_on_the_real_server() {
    let (ours, real) = documents().await;
    let texts = real["texts"].as_object().expect("texts");
    let mut wrong: Vec<&str> = Vec::new();
    for (name, wanted) in texts {
        let schema = &ours["definitions"][name];
        // This one is made for every kind in `k8s-openapi`.
        let is_generic = name.ends_with(".WatchEvent");
        if schema.is_object() && !is_generic && wanted != &json!(digest_of_texts(schema)) {
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} wrong: {wrong:#?}",
        wrong.len(),
        texts.len()
    );
    let described = &ours["definitions"]["com.example.openapi.v1.Gadget"]["properties"];
    for field in ["apiVersion", "kind", "metadata"] {
        let text = described[field]["description"].as_str();
        assert!(
            text.is_some_and(|text| text.len() > 20),
            "{field}: {text:?}"
        );
    }
}

/// kubectl sends the patch that it finds offered: a second `kubectl apply` of a custom resource was
/// answered with 415.
#[tokio::test(start_paused = true)]
async fn a_strategic_merge_is_offered_for_built_in_kinds_only() {
    let (ours, _) = documents().await;
    let strategic = json!("application/strategic-merge-patch+json");
    let (mut custom, mut built_in) = (0, 0);
    for (path, methods) in ours["paths"].as_object().expect("paths") {
        let Some(offered) = methods["patch"]["consumes"].as_array() else {
            continue;
        };
        // What is patched through a proxy is none of the server's objects.
        if methods["patch"]["x-kubernetes-action"] == "connect" {
            continue;
        }
        let is_custom = path.contains("/openapi.example.com/");
        *(if is_custom {
            &mut custom
        } else {
            &mut built_in
        }) += 1;
        assert_eq!(offered.contains(&strategic), !is_custom, "{path}");
    }
    assert!(custom > 0 && built_in > 0, "{custom} {built_in}");
}

/// A client may ask for a document on many streams, and read none of them.
#[tokio::test]
async fn document_is_made_once_and_shared_by_its_answers() {
    let server = ApiServer::new(Config::default());
    for path in ["/openapi/v2", "/openapi/v3/api/v1"] {
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let request = http::Request::get(path).body(String::new());
            let service = server.in_process(Identity::admin());
            let answer = service.oneshot(request.expect("a request")).await;
            let body = answer.expect("it answers").into_body().collect().await;
            bodies.push(body.expect("a whole body").to_bytes());
        }
        assert!(bodies[0].len() > 100_000, "{path}");
        assert_eq!(bodies[0].as_ptr(), bodies[1].as_ptr(), "{path} was copied");
    }
}
