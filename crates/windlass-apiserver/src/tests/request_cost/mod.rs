//! No body costs more than its size: deep and wide objects through every verb, by their steps.

mod managers;
mod stages;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};
use tower::Service as _;

use crate::{ApiServer, Config, Identity};
use windlass_apimachinery::steps::taken;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// How many steps a byte of what is sent and of what is stored may cost. Every stage visits every
/// value about once, and paths that are written count by their bytes.
const STEPS_PER_BYTE: u64 = 20;
/// What a request costs whatever it sends, discovery of what is stored included.
const STEPS_PER_REQUEST: u64 = 20_000;

struct Client {
    server: ApiServer,
    who: Identity,
    /// The form in which it wants answers.
    accept: &'static str,
    /// The longest body sent or answered so far, which is about what is stored.
    longest: usize,
}

impl Client {
    async fn new() -> Self {
        Self::with(Config::default()).await
    }

    async fn with(config: Config) -> Self {
        let mut client = Self {
            server: ApiServer::new(config),
            who: Identity::admin(),
            accept: JSON,
            longest: 0,
        };
        let namespace = json!({"metadata": {"name": "default"}});
        client
            .send(Method::POST, "/api/v1/namespaces", JSON, namespace)
            .await;
        client
    }

    /// Sends a request; its steps must be in proportion to what is sent and stored.
    async fn send(
        &mut self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Value,
    ) -> (StatusCode, Value) {
        let text = match body {
            Value::Null => String::new(),
            // Not JSON: sent as it stands.
            Value::String(text) => text,
            body => body.to_string(),
        };
        self.send_bytes(method, path, media_type, text.into_bytes())
            .await
    }

    async fn send_bytes(
        &mut self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Vec<u8>,
    ) -> (StatusCode, Value) {
        self.longest = self.longest.max(body.len());
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header("content-type", media_type)
            .header("accept", self.accept)
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let before = taken();
        let answer = self
            .server
            .in_process(self.who.clone())
            .call(request)
            .await
            .unwrap();
        let code = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let steps = taken() - before;
        self.longest = self.longest.max(bytes.len());
        let most = STEPS_PER_REQUEST + STEPS_PER_BYTE * self.longest as u64;
        assert!(
            steps <= most,
            "{method} {path} as {media_type}: {steps} steps for {} bytes",
            self.longest
        );
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn works(&mut self, method: Method, path: &str, media_type: &str, body: Value) -> Value {
        let (code, answer) = self.send(method.clone(), path, media_type, body).await;
        let shown = answer["message"].as_str().unwrap_or_default();
        let shown: String = shown.chars().take(500).collect();
        assert!(
            code.is_success(),
            "{method} {path} as {media_type}: {code} {shown}"
        );
        answer
    }

    /// Replaces an object, of whatever version it is.
    async fn replace(&mut self, path: &str, object: Value) -> (StatusCode, Value) {
        self.replace_at(path, path, object).await
    }

    /// The same, with another path to send it to: one with a query.
    async fn replace_at(&mut self, to: &str, path: &str, mut object: Value) -> (StatusCode, Value) {
        let found = self.works(Method::GET, path, JSON, Value::Null).await;
        object["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"].clone();
        self.send(Method::PUT, to, JSON, object).await
    }

    /// Creates an object, changes it by every verb there is, and deletes it. `change` is a part
    /// of the object that differs, and differs from it everywhere.
    async fn every_verb(&mut self, collection: &str, object: &Value, change: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{collection}/{name}");
        let managed = |manager: &str| format!("{path}?fieldManager={manager}&force=true");
        self.works(Method::POST, collection, JSON, object.clone())
            .await;
        let mut whole = object.clone();
        crate::patch::merged(&mut whole, change);
        assert_eq!(self.replace(&path, whole.clone()).await.0, StatusCode::OK);
        assert_eq!(self.replace(&path, object.clone()).await.0, StatusCode::OK);
        self.works(Method::PATCH, &path, MERGE, change.clone())
            .await;
        let replace: Vec<Value> = change
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| *key != "metadata")
            .map(|(key, value)| json!({"op": "replace", "path": format!("/{key}"), "value": value}))
            .collect();
        self.works(Method::PATCH, &path, JSON_PATCH, replace.into())
            .await;
        self.works(Method::PATCH, &managed("one"), APPLY, object.clone())
            .await;
        self.works(Method::PATCH, &managed("one"), APPLY, whole.clone())
            .await;
        self.works(Method::PATCH, &managed("two"), APPLY, object.clone())
            .await;
        let conflict = format!("{path}?fieldManager=three");
        self.send(Method::PATCH, &conflict, APPLY, whole).await;
        let note = json!({"metadata": {"annotations": {"a": "b"}}});
        self.works(Method::PATCH, &path, MERGE, note).await;
        self.works(Method::GET, &path, JSON, Value::Null).await;
        self.works(Method::GET, collection, JSON, Value::Null).await;
        self.works(Method::DELETE, &path, JSON, Value::Null).await;
    }
}

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": schema},
            }}}],
        },
    })
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

/// A value so many objects deep, `leaf` at the bottom and beside the way down.
fn deep(levels: usize, leaf: &Value) -> Value {
    (0..levels).fold(leaf.clone(), |below, _| json!({"a": below, "b": leaf}))
}

fn deep_schema(levels: usize, about: &str) -> Value {
    let leaf = json!({"type": "string", "description": about});
    (0..levels).fold(leaf.clone(), |below, _| {
        json!({"type": "object", "description": about, "properties": {"a": below, "b": leaf}})
    })
}

#[tokio::test]
async fn a_definition_forty_deep_costs_its_size() {
    let mut client = Client::new().await;
    let nested = definition(&deep_schema(40, "x"));
    let change = json!({"spec": definition(&deep_schema(40, "y"))["spec"]});
    client.every_verb(CRDS, &nested, &change).await;
}

#[tokio::test]
async fn an_object_sixty_deep_costs_its_size() {
    let mut client = Client::new().await;
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    client
        .works(Method::POST, CRDS, JSON, definition(&free))
        .await;
    let (old, new) = (
        deep(60, &json!("x".repeat(20))),
        deep(60, &json!("y".repeat(20))),
    );
    client
        .every_verb(THINGS, &thing(&old), &json!({"spec": new}))
        .await;
}

#[tokio::test]
async fn keyed_lists_and_sets_of_thousands_cost_their_size() {
    let mut client = Client::new().await;
    let schema = json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"}, "v": {"type": "integer", "maximum": 5, "default": 1},
            }},
        },
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    client
        .works(Method::POST, CRDS, JSON, definition(&schema))
        .await;
    let spec = |order: &mut dyn Iterator<Item = i32>, value: i32| {
        let order: Vec<i32> = order.collect();
        let keyed: Vec<Value> = order
            .iter()
            .map(|n| json!({"k": format!("k{n}"), "v": value}))
            .collect();
        let set: Vec<String> = order.iter().map(|n| format!("s{n}")).collect();
        let map: Map<String, Value> = order
            .iter()
            .map(|n| (format!("m{n}"), format!("{value}").into()))
            .collect();
        json!({"keyed": keyed, "set": set, "map": map})
    };
    let (old, new) = (spec(&mut (0..3000), 1), spec(&mut (0..3000).rev(), 2));
    client
        .every_verb(THINGS, &thing(&old), &json!({"spec": new}))
        .await;
    // Every item is wrong, and each is looked for among those before.
    let wrong = thing(&spec(&mut (0..3000), 6));
    let (code, _) = client.send(Method::POST, THINGS, JSON, wrong.clone()).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    client.works(Method::POST, THINGS, JSON, thing(&old)).await;
    let path = format!("{THINGS}/a");
    let (code, _) = client.replace(&path, wrong).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn built_in_lists_of_thousands_cost_their_size() {
    let mut client = Client::new().await;
    let env = |value: &str, order: &mut dyn Iterator<Item = i32>| -> Vec<Value> {
        order
            .map(|n| json!({"name": format!("N{n}"), "value": value}))
            .collect()
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
    let (old, new) = (
        deployment(env("a", &mut (0..3000))),
        deployment(env("b", &mut (0..3000).rev())),
    );
    client
        .every_verb(DEPLOYMENTS, &old, &json!({"spec": new["spec"]}))
        .await;
    client.works(Method::POST, DEPLOYMENTS, JSON, old).await;
    let order: Vec<Value> = (0..3000)
        .rev()
        .map(|n| json!({"name": format!("N{n}")}))
        .collect();
    let body = json!({"spec": {"template": {"spec": {"containers": [{
        "name": "c", "env": env("c", &mut (0..3000).rev()), "$setElementOrder/env": order,
    }]}}}});
    let path = format!("{DEPLOYMENTS}/d");
    client.works(Method::PATCH, &path, STRATEGIC, body).await;
    let finalizers: Vec<String> = (0..3000).map(|n| format!("x.io/f{n}")).collect();
    let body = json!({"metadata": {"finalizers": finalizers}});
    client
        .works(Method::PATCH, &path, STRATEGIC, body.clone())
        .await;
    client.works(Method::PATCH, &path, STRATEGIC, body).await;
    let body = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}});
    client.works(Method::PATCH, &path, STRATEGIC, body).await;
}

#[tokio::test]
async fn a_map_of_thousands_costs_its_size() {
    let mut client = Client::new().await;
    let data = |value: &str| -> Map<String, Value> {
        (0..5000).map(|n| (format!("k{n}"), value.into())).collect()
    };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data("a")});
    client
        .every_verb(MAPS, &map, &json!({"data": data("b")}))
        .await;
}

#[tokio::test]
async fn a_long_key_is_not_written_for_every_value_below_it() {
    let mut client = Client::new().await;
    let key = "k".repeat(100_000);
    let below = vec![json!(0); 50_000];
    let body = json!({key.as_str(): below});
    client
        .works(Method::POST, REVIEWS, JSON, body.clone())
        .await;
    let strict = format!("{REVIEWS}?fieldValidation=Strict");
    client.send(Method::POST, &strict, JSON, body).await;
    // The same where the key is known, and everything below is wrong, unknown, or another's.
    let schema = json!({"type": "object", "properties": {
        "texts": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        "objects": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object"}}},
        "maps": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}},
    }});
    client
        .works(Method::POST, CRDS, JSON, definition(&schema))
        .await;
    let of = |field: &str, item: &Value| {
        thing(&json!({field: {key.as_str(): vec![item.clone(); 5000]}}))
    };
    let (code, answer) = client
        .send(Method::POST, THINGS, JSON, of("texts", &json!(1)))
        .await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer["details"]["causes"].as_array().unwrap().len() < 20);
    client
        .works(
            Method::POST,
            THINGS,
            JSON,
            of("objects", &json!({"odd": 1})),
        )
        .await;
    let map = |value: &str| -> Value {
        let below: Map<String, Value> =
            (0..5000).map(|n| (format!("k{n}"), value.into())).collect();
        thing(&json!({"maps": {key.as_str(): below}}))
    };
    let path = format!("{THINGS}/a");
    assert_eq!(client.replace(&path, map("a")).await.0, StatusCode::OK);
    let one = format!("{path}?fieldManager=one");
    // YAML wants a long key to be marked as one.
    let below = map("b")["spec"]["maps"][&key].to_string();
    let config = format!(
        "apiVersion: x.io/v1\nkind: Thing\nmetadata: {{name: a}}\nspec:\n  maps:\n    ? {key}\n    : {below}\n"
    );
    let (code, _) = client.send(Method::PATCH, &one, APPLY, config.into()).await;
    assert_eq!(code, StatusCode::CONFLICT);
}

#[tokio::test]
async fn unknown_fields_by_the_thousand_cost_their_size() {
    let mut client = Client::new().await;
    let odd: Map<String, Value> = (0..50_000).map(|n| (format!("odd{n}"), json!(n))).collect();
    client.works(Method::POST, REVIEWS, JSON, json!(odd)).await;
    let strict = format!("{REVIEWS}?fieldValidation=Strict");
    let (code, _) = client.send(Method::POST, &strict, JSON, json!(odd)).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_definition_with_a_long_name_above_many_fields_costs_its_size() {
    let mut client = Client::new().await;
    let below: Map<String, Value> = (0..3000)
        .map(|n| (format!("k{n}"), json!({"type": "string"})))
        .collect();
    let schema = json!({"type": "object", "properties": {
        "k".repeat(300_000): {"type": "object", "properties": below},
    }});
    let (code, answer) = client
        .send(Method::POST, CRDS, JSON, definition(&schema))
        .await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    let said = answer["message"].as_str().unwrap();
    assert!(said.contains("the paths of its fields"), "{said}");
}

#[tokio::test]
async fn a_role_of_long_lists_costs_its_size() {
    let mut client = Client::new().await;
    client.who = Identity::new("jane", []);
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let everything = json!([{"apiGroups": [""], "resources": ["*"], "verbs": ["*"]}]);
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    let admin = std::mem::replace(&mut client.who, Identity::admin());
    let made = role(
        "own",
        json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]},
        ]),
    );
    client.works(Method::POST, roles, JSON, made).await;
    let binding = json!({"metadata": {"name": "own"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "own"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}]});
    let bindings = roles.replace("roles", "rolebindings");
    client.works(Method::POST, &bindings, JSON, binding).await;
    client.who = admin;
    let texts = |what: &str| (0..2000).map(|n| format!("{what}{n}")).collect::<Vec<_>>();
    let wide = json!([{"apiGroups": texts("g"), "resources": texts("r"), "verbs": texts("v"), "resourceNames": texts("n")}]);
    for (name, rules, expected) in [
        ("wide", wide, StatusCode::FORBIDDEN),
        ("more", everything, StatusCode::FORBIDDEN),
        (
            "names",
            json!([{"apiGroups": [""], "resources": ["pods"], "verbs": texts("v"), "resourceNames": texts("n")}]),
            StatusCode::CREATED,
        ),
    ] {
        let (code, answer) = client
            .send(Method::POST, roles, JSON, role(name, rules))
            .await;
        assert_eq!(code, expected, "{name}: {}", answer["reason"]);
    }
}

#[tokio::test]
async fn a_pod_of_thousands_of_everything_costs_its_size() {
    let mut client = Client::new().await;
    let account = json!({"metadata": {"name": "default"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    client.works(Method::POST, accounts, JSON, account).await;
    let many = |of: &dyn Fn(i32) -> Value| (0..2000).map(of).collect::<Vec<_>>();
    let pod = json!({
        "metadata": {"name": "p", "finalizers": many(&|n| format!("x.io/f{n}").into())},
        "spec": {
            "containers": [{
                "name": "c", "image": "i",
                "ports": many(&|_| json!({"containerPort": 80})),
                "volumeMounts": many(&|n| json!({"name": "v", "mountPath": format!("/m{n}")})),
            }],
            "volumes": [{"name": "v", "configMap": {"name": "m", "items": many(&|_| json!({"key": "k", "path": "p"}))}}],
            "tolerations": many(&|n| json!({"key": format!("k{n}"), "operator": "Exists"})),
        },
    });
    let pods = "/api/v1/namespaces/default/pods";
    client.works(Method::POST, pods, JSON, pod).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    client
        .works(Method::PATCH, &format!("{pods}/p"), MERGE, label)
        .await;
    client
        .works(Method::DELETE, &format!("{pods}/p"), JSON, Value::Null)
        .await;
    let late = json!({"metadata": {"finalizers": many(&|n| format!("x.io/f{}", n / 2).into())}});
    client
        .works(Method::PATCH, &format!("{pods}/p"), MERGE, late)
        .await;
}
