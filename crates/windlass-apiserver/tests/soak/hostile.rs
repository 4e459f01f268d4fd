//! Bodies that are made to be expensive, sent by an account without rights where any account may
//! send one, and by one that may write: what each costs of a core and of memory.
//!
//! No request may cost more than 100 ms of a core per MiB of its body. That is judged here alone,
//! on a machine that does nothing else; the ordinary tests count steps.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use tower::Service as _;
use windlass_apiserver::{ApiServer, Config, Identity};

use crate::resident;

const MIB: usize = 1024 * 1024;
/// How large what is to be stored is: with who owns what it has to fit the limit.
const STORED: usize = MIB / 3;
/// What a request may cost, in milliseconds of a core per MiB.
const MOST_MILLIS: u128 = 100;
/// What one of them may leave behind, in KiB.
const MOST_KIB: usize = 256 * 1024;

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const THINGS: &str = "/apis/hostile.example.com/v1/namespaces/default/things";

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

pub(crate) struct Hostile {
    name: &'static str,
    method: &'static str,
    path: String,
    pub(crate) media_type: &'static str,
    pub(crate) body: String,
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "bodies are made where they are sent"
)]
fn post(name: &'static str, path: &str, body: impl ToString) -> Hostile {
    Hostile {
        name,
        method: "POST",
        path: path.to_owned(),
        media_type: JSON,
        body: body.to_string(),
    }
}

fn patch(name: &'static str, path: &str, media_type: &'static str, body: impl ToString) -> Hostile {
    Hostile {
        method: "PATCH",
        media_type,
        ..post(name, path, body)
    }
}

/// As many of something as fit about so many bytes.
fn many(bytes: usize, each: usize, of: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..bytes / each).map(of).collect()
}

fn fields(bytes: usize, value: &Value) -> Map<String, Value> {
    let count = bytes / (14 + value.to_string().len());
    (0..count)
        .map(|n| (format!("field{n}"), value.clone()))
        .collect()
}

fn nested(levels: usize, leaf: &Value) -> Value {
    (0..levels).fold(leaf.clone(), |below, _| json!({"a": below}))
}

fn thing(spec: &Value) -> Value {
    json!({"apiVersion": "hostile.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

fn definition(name: &str, schema: &Value) -> Value {
    json!({
        "metadata": {"name": format!("{name}.hostile.example.com")},
        "spec": {
            "group": "hostile.example.com", "scope": "Namespaced",
            "names": {"plural": name, "kind": name.trim_end_matches('s').replace('t', "T")},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}}],
        },
    })
}

/// What any account may send.
pub(crate) fn without_rights() -> Vec<Hostile> {
    let key = "k".repeat(MIB);
    let deep = "[".repeat(2 * MIB);
    let twice = r#""a":1,"#.repeat(MIB / 4);
    let escapes = "\\u0000".repeat(MIB / 3);
    let halves = "\\ud800".repeat(MIB / 3);
    vec![
        post(
            "a long key above many zeros",
            REVIEWS,
            json!({key.as_str(): vec![0; MIB * 9 / 10]}),
        ),
        post("unknown fields", REVIEWS, json!(fields(2 * MIB, &json!(1)))),
        post(
            "the same field again and again",
            REVIEWS,
            format!("{{{twice}\"a\":1}}"),
        ),
        post(
            "a long key above the same field",
            REVIEWS,
            format!("{{\"{key}\":[{{{twice}\"a\":1}}]}}"),
        ),
        post("brackets that never close", REVIEWS, deep),
        post(
            "a text of escapes",
            REVIEWS,
            format!("{{\"a\":\"{escapes}\"}}"),
        ),
        post(
            "halves of characters",
            REVIEWS,
            format!("{{\"a\":\"{halves}\"}}"),
        ),
        post(
            "many numbers",
            REVIEWS,
            json!({"a": vec![1.5e300; MIB / 4]}),
        ),
        Hostile {
            media_type: YAML,
            ..post("YAML of many lines", REVIEWS, "- a\n".repeat(MIB / 2))
        },
        Hostile {
            media_type: YAML,
            ..post(
                "YAML of aliases",
                REVIEWS,
                format!("a: &a [x, x]\nb: [{}]", "*a,".repeat(MIB / 2)),
            )
        },
        Hostile {
            media_type: YAML,
            ..post("YAML of one deep flow", REVIEWS, "[".repeat(MIB))
        },
    ]
}

/// What one that may write in a namespace may send.
fn with_rights() -> Vec<Hostile> {
    let of_maps = |name: &str, data: &Map<String, Value>| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    let data = fields(STORED, &json!("a"));
    let other = fields(STORED, &json!("b"));
    let config_map = format!("{MAPS}/wide");
    let finalizers = many(STORED, 20, |n| format!("x.io/f{n}").into());
    let keyed = |value: i32| many(STORED, 30, |n| json!({"k": format!("k{n}"), "v": value}));
    let set = many(STORED, 12, |n| format!("s{n}").into());
    let texts = |what: &str| many(STORED / 4, 10, |n| format!("{what}{n}").into());
    let ports = many(STORED, 30, |_| json!({"containerPort": 80}));
    let env = |value: &str| {
        many(
            MIB,
            32,
            |n| json!({"name": format!("N{n}"), "value": value}),
        )
    };
    let pod = |parts: Value| {
        let mut container = json!({"name": "c", "image": "i"});
        container
            .as_object_mut()
            .expect("a map")
            .extend(parts.as_object().cloned().unwrap_or_default());
        json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    };
    let copies: Vec<Value> = (0..9_000)
        .map(|_| json!({"op": "copy", "from": "/data", "path": "/metadata/annotations"}))
        .collect();
    let template = |env: Vec<Value>| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}}});
    let mut deployment = template(env("a"));
    deployment["metadata"] = json!({"name": "d"});
    deployment["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    deployment["spec"]["template"]["metadata"] = json!({"labels": {"a": "b"}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let leaf = json!({"type": "string"});
    let schema = (0..40).fold(leaf.clone(), |below, n| {
        let mut properties = fields(STORED / 60, &leaf);
        properties.insert(format!("below{n}"), below);
        json!({"type": "object", "properties": properties})
    });
    vec![
        post("a wide map", MAPS, of_maps("wide", &data)),
        patch(
            "a wide map, applied",
            &format!("{config_map}?fieldManager=a&force=true"),
            APPLY,
            of_maps("wide", &other),
        ),
        patch(
            "a wide map, in conflict",
            &format!("{config_map}?fieldManager=b"),
            APPLY,
            of_maps("wide", &data),
        ),
        patch(
            "a wide map, changed",
            &config_map,
            STRATEGIC,
            json!({"data": data}),
        ),
        patch(
            "copies of a wide map",
            &config_map,
            JSON_PATCH,
            json!(copies),
        ),
        post(
            "finalizers",
            MAPS,
            json!({"metadata": {"name": "held", "finalizers": finalizers}}),
        ),
        patch(
            "finalizers, merged",
            &format!("{MAPS}/held"),
            STRATEGIC,
            json!({"metadata": {"finalizers": finalizers}}),
        ),
        patch(
            "finalizers, deleted",
            &format!("{MAPS}/held"),
            STRATEGIC,
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}}),
        ),
        post("a pod of many ports", PODS, pod(json!({"ports": ports}))),
        post("variables", deployments, deployment),
        patch(
            "variables, merged",
            &format!("{deployments}/d"),
            STRATEGIC,
            template(env("b")),
        ),
        post(
            "a role of long lists",
            ROLES,
            json!({"metadata": {"name": "r"}, "rules": [{
                "apiGroups": texts("g"), "resources": texts("r"), "verbs": texts("v"), "resourceNames": texts("n"),
            }]}),
        ),
        post(
            "a deep and wide definition",
            CRDS,
            definition("deeps", &schema),
        ),
        patch(
            "a deep and wide definition, applied",
            &format!("{CRDS}/deeps.hostile.example.com?fieldManager=a&force=true"),
            APPLY,
            {
                let mut again = definition("deeps", &schema);
                again["apiVersion"] = "apiextensions.k8s.io/v1".into();
                again["kind"] = "CustomResourceDefinition".into();
                again
            },
        ),
        post(
            "keyed items",
            THINGS,
            thing(&json!({"keyed": keyed(1), "set": set})),
        ),
        patch(
            "keyed items, applied",
            &format!("{THINGS}/a?fieldManager=a&force=true"),
            APPLY,
            thing(&json!({"keyed": keyed(2), "set": set})),
        ),
        post(
            "keyed items that are wrong",
            THINGS,
            thing(&json!({"keyed": keyed(9)})),
        ),
        post(
            "an object too deep",
            THINGS,
            thing(&nested(95, &json!("x".repeat(MIB)))),
        ),
        post(
            "a long key above wrong items",
            THINGS,
            thing(&json!({"lists": {"k".repeat(MIB): vec![0; MIB / 2]}})),
        ),
        post(
            "a long key above unknown fields",
            THINGS,
            thing(&json!({"objects": {"k".repeat(MIB): vec![json!({"a": 1}); MIB / 8]}})),
        ),
    ]
}

/// What this thread has used of a core, in nanoseconds.
fn on_core() -> u128 {
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    used.split_whitespace()
        .next()
        .and_then(|used| used.parse().ok())
        .expect("a number")
}

async fn send(server: &ApiServer, who: &Identity, hostile: &Hostile) -> (StatusCode, usize) {
    let request = Request::builder()
        .method(hostile.method)
        .uri(&hostile.path)
        .header("content-type", hostile.media_type)
        .body(Full::new(Bytes::from(hostile.body.clone())))
        .expect("a request");
    let answer = server
        .in_process(who.clone())
        .call(request)
        .await
        .expect("infallible");
    let code = answer.status();
    let headers = answer.headers().values().map(http::HeaderValue::len).sum();
    answer.into_body().collect().await.expect("whole");
    (code, headers)
}

#[tokio::test]
#[ignore = "it measures: `make soak` runs it"]
async fn hostile_bodies_cost_no_more_than_their_size_allows() {
    let server = ApiServer::new(Config::default());
    let admin = Identity::admin();
    let items = json!({"type": "object", "required": ["k"], "properties": {
        "k": {"type": "string"}, "v": {"type": "integer", "maximum": 5},
    }});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items},
        "lists": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        "objects": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object"}}},
    }});
    for setup in [
        post(
            "",
            "/api/v1/namespaces",
            json!({"metadata": {"name": "default"}}),
        ),
        post(
            "",
            "/api/v1/namespaces/default/serviceaccounts",
            json!({"metadata": {"name": "default"}}),
        ),
        post("", CRDS, definition("things", &schema)),
    ] {
        let (code, _) = send(&server, &admin, &setup).await;
        let there = code.is_success() || code == StatusCode::CONFLICT;
        assert!(there, "{}: {code}", setup.path);
    }
    let nobody = Identity::service_account("default", "nobody");
    let all = without_rights()
        .into_iter()
        .map(|hostile| (&nobody, hostile));
    let all = all.chain(with_rights().into_iter().map(|hostile| (&admin, hostile)));
    let mut over = Vec::new();
    println!("  ms of a core per MiB, MiB sent, KiB it left, status, bytes of headers");
    for (who, hostile) in all {
        let (before, used) = (resident(), on_core());
        let (code, headers) = send(&server, who, &hostile).await;
        let millis = (on_core() - used) / 1_000_000;
        let grown = resident().saturating_sub(before);
        let size = hostile.body.len();
        // Less than a MiB costs as one: there is a price for any request.
        let each = millis * MIB as u128 / size.max(MIB) as u128;
        println!(
            "  {each:>5} {:>4} {grown:>8} {code} {headers:>5} {}",
            size / MIB,
            hostile.name
        );
        if each > MOST_MILLIS || grown > MOST_KIB || headers > 16 * 1024 {
            over.push(hostile.name);
        }
    }
    assert!(over.is_empty(), "too expensive: {over:?}");
}
