//! Requests nobody would send, and a server to send them to.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Collected, Full};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

use windlass_apiserver::InProcess;

/// Where they are sent.
pub(crate) const PLURALS: &[&str] = &[
    "api/v1/namespaces/default/pods",
    "api/v1/namespaces/default/services",
    "api/v1/namespaces/default/configmaps",
    "api/v1/namespaces/default/secrets",
    "api/v1/namespaces/default/events",
    "api/v1/namespaces",
    "api/v1/nodes",
    "api/v1/persistentvolumes",
    "apis/apps/v1/namespaces/default/deployments",
    "apis/apps/v1/namespaces/default/daemonsets",
    "apis/batch/v1/namespaces/default/jobs",
    "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "apis/example.com/v1/namespaces/default/things",
];

/// One request, as text.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

fn any_tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(i64::MAX), Just(i64::MIN), -2..3_i64].prop_map(Value::from),
        prop_oneof![
            Just("1Gi".to_owned()),
            Just("None".to_owned()),
            Just("NodePort".to_owned()),
            Just("example.com/x".to_owned()),
            Just("2020-01-01T00:00:00Z".to_owned()),
            "[a-zé%$]{0,3}",
        ]
        .prop_map(Value::from),
    ];
    let key = proptest::sample::select(vec![
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "generation",
        "uid",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "deletionTimestamp",
        "spec",
        "status",
        "containers",
        "ports",
        "resources",
        "requests",
        "template",
        "selector",
        "matchLabels",
        "replicas",
        "type",
        "clusterIP",
        "data",
        "stringData",
        "rules",
        "versions",
        "names",
        "schema",
        "openAPIV3Schema",
        "properties",
        "default",
        "conditions",
        "target",
        "$patch",
        "$retainKeys",
        "$setElementOrder/ports",
        "op",
        "path",
        "value",
        "from",
        "gracePeriodSeconds",
        "subsets",
    ]);
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..5).prop_map(|map| json!(map)),
        ]
    })
}

fn any_nonsense() -> impl Strategy<Value = Sent> {
    let method = proptest::sample::select(vec![
        "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD",
    ]);
    let plural = proptest::sample::select(PLURALS);
    let rest = proptest::sample::select(vec![
        "",
        "/a",
        "/a/status",
        "/a/scale",
        "/a/finalize",
        "/a/binding",
        "/a/log",
        "/things.example.com",
        "/things.example.com/status",
        "/%zz",
        "/é",
    ]);
    let query = proptest::sample::select(vec![
        "",
        "dryRun=All",
        "fieldManager=m&force=true",
        "limit=1&continue=bm9uc2Vuc2U",
        "watch=1&timeoutSeconds=9223372036854775807&resourceVersion=99999999",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "labelSelector=a%20in%20(&fieldSelector=,,=",
        "fieldValidation=Strict",
        "gracePeriodSeconds=-9223372036854775808",
    ]);
    let content_type = proptest::sample::select(vec![
        "application/json",
        "application/yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ]);
    let body = prop_oneof![
        6 => any_tree().prop_map(|tree| tree.to_string()),
        1 => ".{0,40}".prop_map(String::from),
    ];
    (method, plural, rest, query, content_type, body).prop_map(
        |(method, plural, rest, query, content_type, body)| Sent {
            method,
            path: format!("/{plural}{rest}?{query}").replace('é', "%C3%A9"),
            content_type,
            body,
        },
    )
}

/// The status of the answer and its body, unless it is a watch's; 0 when the request could not even
/// be made.
pub(crate) async fn send(client: &InProcess, sent: &Sent) -> (u16, Bytes) {
    let request = Request::builder()
        .method(sent.method)
        .uri(&sent.path)
        .header("content-type", sent.content_type)
        .body(Full::new(Bytes::from(sent.body.clone())));
    let Ok(request) = request else {
        return (0, Bytes::new());
    };
    let answer = client.clone().oneshot(request).await.expect("infallible");
    let code = answer.status().as_u16();
    if sent.path.contains("watch=1") {
        return (code, Bytes::new());
    }
    let body = answer.into_body().collect().await;
    (code, body.map(Collected::to_bytes).unwrap_or_default())
}

/// Any request: most make no sense, some do.
pub(crate) fn any_request() -> impl Strategy<Value = Sent> {
    let name = proptest::sample::select(vec!["a", "b", "c"]);
    let action = proptest::sample::select(vec!["POST", "PUT", "PATCH", "GET", "DELETE"]);
    let sensible = (
        proptest::sample::select(objects()),
        name,
        action,
        any::<u8>(),
    )
        .prop_map(|((plural, mut object), name, method, number)| {
            if !plural.ends_with("customresourcedefinitions") {
                object["metadata"]["name"] = name.into();
            }
            object["metadata"]["labels"] = json!({"number": number.to_string()});
            let rest = match (method, object["metadata"]["name"].as_str()) {
                ("POST", _) | (_, None) => String::new(),
                (_, Some(name)) => format!("/{name}"),
            };
            Sent {
                method,
                path: format!("/{plural}{rest}"),
                content_type: match method {
                    "PATCH" => "application/merge-patch+json",
                    _ => "application/json",
                },
                body: match method {
                    "GET" | "DELETE" => String::new(),
                    _ => object.to_string(),
                },
            }
        });
    prop_oneof![2 => any_nonsense(), 1 => sensible]
}

/// Objects for requests to change, by where they are made.
fn objects() -> Vec<(&'static str, Value)> {
    let things = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"replicas": {"type": "integer", "default": 1}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}});
    let pod = json!({"containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 1}]}]});
    let web = json!({"replicas": 1, "selector": {"matchLabels": {"a": "a"}}, "template": {"metadata": {"labels": {"a": "a"}}, "spec": pod}});
    vec![
        (
            "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            things,
        ),
        (
            "api/v1/namespaces/default/serviceaccounts",
            json!({"metadata": {"name": "default"}}),
        ),
        (
            "api/v1/namespaces/default/pods",
            json!({"metadata": {"name": "a", "finalizers": ["example.com/a"]}, "spec": pod}),
        ),
        (
            "api/v1/namespaces/default/services",
            json!({"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 1}]}}),
        ),
        (
            "api/v1/namespaces/default/configmaps",
            json!({"metadata": {"name": "a", "generation": i64::MAX, "finalizers": ["example.com/a"]}}),
        ),
        (
            "apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"name": "a"}, "spec": web}),
        ),
        (
            "apis/example.com/v1/namespaces/default/things",
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"ports": [1]}}),
        ),
    ]
}

/// Makes the objects for requests to change; those that are there already stay as they are.
pub(crate) async fn furnish(client: &InProcess) {
    for (path, object) in objects() {
        let sent = Sent {
            method: "POST",
            path: format!("/{path}"),
            content_type: "application/json",
            body: object.to_string(),
        };
        let (code, _) = send(client, &sent).await;
        assert!(code == 201 || code == 409, "{path}: {code}");
    }
}
