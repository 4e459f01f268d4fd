//! Everything that reads what a client wrote, on texts nobody would write: each gets an answer that
//! blames the client, never the server, and nothing panics.

use std::sync::LazyLock;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Clock, Config, Identity, InProcess, Random};

static SERVER: LazyLock<(Runtime, InProcess)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let server = ApiServer::new(Config {
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        random: Random::seeded(1),
        ..Config::default()
    });
    let client = server.in_process(Identity::admin());
    let pod = json!({"containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 1}]}]});
    let web = json!({"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"selector": {"matchLabels": {"a": "a"}},
        "template": {"metadata": {"labels": {"a": "a"}}, "spec": pod}}});
    let made = runtime.block_on(send(&client, "POST", DEPLOYMENTS, JSON, web.to_string()));
    assert_eq!(made.0, 201);
    (runtime, client)
});

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";

async fn send(
    client: &InProcess,
    method: &str,
    path: &str,
    content_type: &str,
    body: impl Into<Bytes>,
) -> (u16, Bytes) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Full::new(body.into()));
    let Ok(request) = request else {
        return (400, Bytes::new());
    };
    let answer = client.clone().oneshot(request).await.expect("infallible");
    let code = answer.status().as_u16();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("whole")
        .to_bytes();
    (code, body)
}

fn ask(method: &str, path: &str, content_type: &str, body: impl Into<Bytes>) -> (u16, Bytes) {
    let (runtime, client) = &*SERVER;
    runtime.block_on(send(client, method, path, content_type, body))
}

/// Strings of a few signs, so that what is nearly right comes up often.
fn text(signs: &'static str, length: usize) -> impl Strategy<Value = String> {
    let signs: Vec<char> = signs.chars().collect();
    proptest::collection::vec(proptest::sample::select(signs), 0..length)
        .prop_map(|signs| signs.into_iter().collect())
}

fn escaped(text: &str) -> String {
    text.bytes()
        .fold(String::new(), |out, byte| format!("{out}%{byte:02X}"))
}

fn any_value(
    keys: &'static [&'static str],
    words: &'static [&'static str],
) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(words).prop_map(Value::from),
    ];
    leaf.prop_recursive(7, 64, 6, move |inner| {
        let member = (proptest::sample::select(keys), inner.clone());
        prop_oneof![
            1 => proptest::collection::vec(inner, 0..4).prop_map(Value::from),
            4 => proptest::collection::vec(member, 0..6).prop_map(|members| {
                let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect::<Map<_, _>>())
            }),
        ]
    })
    .boxed()
}

const SCHEMA_KEYS: &[&str] = &[
    "type",
    "properties",
    "items",
    "default",
    "pattern",
    "enum",
    "format",
    "required",
    "nullable",
    "additionalProperties",
    "minimum",
    "maximum",
    "maxLength",
    "maxItems",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "a",
    "spec",
    "status",
    "metadata",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];
const SCHEMA_WORDS: &[&str] = &[
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "",
    "a",
    "[",
    "(a+)+$",
    "set",
    "map",
    "atomic",
    "granular",
    "date-time",
    "int32",
];
const PATCH_KEYS: &[&str] = &[
    "op",
    "path",
    "value",
    "from",
    "metadata",
    "name",
    "spec",
    "template",
    "containers",
    "ports",
    "labels",
    "finalizers",
    "replicas",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "managedFields",
    "ownerReferences",
    "apiVersion",
    "kind",
];
const PATCH_WORDS: &[&str] = &[
    "add",
    "remove",
    "replace",
    "move",
    "copy",
    "test",
    "/spec",
    "/spec/replicas",
    "/metadata/labels/a",
    "/spec/template/spec/containers/0",
    "/spec/template/spec/containers/-",
    "/",
    "",
    "~",
    "/~2",
    "delete",
    "merge",
    "a",
    "apps/v1",
    "Deployment",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn paths(path in text("/apisv1cor.%2Fz0é{}?#", 60), method in proptest::sample::select(vec!["GET", "PUT", "DELETE", "HEAD"])) {
        let (code, _) = ask(method, &format!("/{}", path.replace('é', "%C3%A9")), JSON, "{}");
        prop_assert!(code < 500, "{code}");
    }

    #[test]
    fn queries(query in text("limtconueraySVsf&=%;+0129-,", 60)) {
        let (code, _) = ask("GET", &format!("{DEPLOYMENTS}?{query}"), JSON, "");
        prop_assert!(code < 500, "{code}");
    }

    #[test]
    fn label_selectors(selector in text("ab=!,() innotexs/.-é", 40)) {
        let (code, _) = ask("GET", &format!("{DEPLOYMENTS}?labelSelector={}", escaped(&selector)), JSON, "");
        prop_assert!(code == 200 || code == 400, "{code}");
    }

    #[test]
    fn field_selectors(selector in text("metad.name=!,\\spc", 40)) {
        let (code, _) = ask("GET", &format!("{DEPLOYMENTS}?fieldSelector={}", escaped(&selector)), JSON, "");
        prop_assert!(code == 200 || code == 400, "{code}");
    }

    #[test]
    fn continue_tokens(token in text("eyJ2IjoibWV0YS5rOHMuaW8vdjEi=-_", 60), limit in any::<i32>()) {
        let (code, _) = ask("GET", &format!("{DEPLOYMENTS}?limit={limit}&continue={token}"), JSON, "");
        prop_assert!(code == 200 || code == 400 || code == 410, "{code}");
    }

    #[test]
    fn bytes_as_bodies(body in proptest::collection::vec(any::<u8>(), 0..80), yaml in any::<bool>()) {
        let kind = if yaml { "application/yaml" } else { JSON };
        let (code, _) = ask("POST", DEPLOYMENTS, kind, body);
        prop_assert!((400..500).contains(&code), "{code}");
    }

    #[test]
    fn yaml(body in text("ab: -[]{}&*!|>'\"\n#%?,\t", 60)) {
        let (code, _) = ask("POST", DEPLOYMENTS, "application/yaml", body);
        prop_assert!((400..500).contains(&code), "{code}");
    }

    #[test]
    fn json_patches(operations in proptest::collection::vec(any_value(PATCH_KEYS, PATCH_WORDS), 0..4)) {
        let path = format!("{DEPLOYMENTS}/a?dryRun=All");
        let (code, _) = ask("PATCH", &path, "application/json-patch+json", Value::from(operations).to_string());
        prop_assert!(code < 500, "{code}");
    }

    #[test]
    fn other_patches(
        patch in any_value(PATCH_KEYS, PATCH_WORDS),
        kind in proptest::sample::select(vec!["application/merge-patch+json", "application/strategic-merge-patch+json"]),
    ) {
        let (code, body) = ask("PATCH", &format!("{DEPLOYMENTS}/a?dryRun=All"), kind, patch.to_string());
        // Kubernetes itself blames itself for directives it does not know.
        prop_assert!(code < 500 || code == 500 && !body.is_empty(), "{code}");
    }

    #[test]
    fn applied_objects(object in any_value(PATCH_KEYS, PATCH_WORDS)) {
        let path = format!("{DEPLOYMENTS}/a?dryRun=All&fieldManager=m&force=true");
        let (code, body) = ask("PATCH", &path, "application/apply-patch+yaml", object.to_string());
        // So does it for fields it does not know.
        prop_assert!(code < 500 || code == 500 && !body.is_empty(), "{code}");
    }

    #[test]
    fn definitions_and_their_objects(
        schema in any_value(SCHEMA_KEYS, SCHEMA_WORDS),
        object in any_value(SCHEMA_KEYS, SCHEMA_WORDS),
    ) {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
        let (code, _) = ask("POST", DEFINITIONS, JSON, definition.to_string());
        prop_assert!(matches!(code, 201 | 400 | 422), "{code}");
        if code == 201 {
            let mut object = json!({"spec": object, "a": object});
            object["apiVersion"] = "example.com/v1".into();
            object["kind"] = "A".into();
            object["metadata"] = json!({"name": "a"});
            let (code, _) = ask("POST", "/apis/example.com/v1/as", JSON, object.to_string());
            prop_assert!(matches!(code, 201 | 400 | 422), "{code}");
            ask("DELETE", &format!("{DEFINITIONS}/as.example.com"), JSON, "");
        }
    }
}
