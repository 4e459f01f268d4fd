//! Roles that gather the rules of others, and the roles every cluster starts with.

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::Service as _;
use windlass_apiserver::{ApiServer, Config, Identity};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

async fn send(server: &ApiServer, method: Method, path: &str, body: Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(bytes::Bytes::from(body.to_string())))
        .unwrap();
    let answer = server.in_process(Identity::admin()).call(request).await;
    let body = answer.unwrap().into_body().collect().await.unwrap();
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

/// Whether jane, of this group, may do that in the namespace `default`.
async fn may(server: &ApiServer, group: &str, verb: &str, resource: &str) -> bool {
    let (group, resource) = (group.to_owned(), resource.to_owned());
    let (resource, of) = resource.split_once('.').unwrap_or((&resource, ""));
    let review = json!({"spec": {"user": "jane", "groups": [group], "resourceAttributes": {
        "namespace": "default", "verb": verb, "resource": resource, "group": of,
    }}});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    send(server, Method::POST, path, review).await["status"]["allowed"] == true
}

async fn bind(server: &ApiServer, role: &str) {
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": format!("{role}s")}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    send(server, Method::POST, path, binding).await;
}

fn widgets() -> Value {
    json!({
        "metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list"]}],
    })
}

#[tokio::test]
async fn admin_edit_and_view_are_what_they_are_in_kubernetes() {
    let server = ApiServer::new(Config::default());
    for role in ["view", "edit", "admin"] {
        bind(&server, role).await;
    }
    assert!(may(&server, "views", "list", "pods").await);
    assert!(!may(&server, "views", "list", "secrets").await);
    assert!(!may(&server, "views", "create", "deployments.apps").await);
    assert!(may(&server, "edits", "create", "deployments.apps").await);
    assert!(
        !may(
            &server,
            "edits",
            "create",
            "roles.rbac.authorization.k8s.io"
        )
        .await
    );
    assert!(
        may(
            &server,
            "admins",
            "create",
            "roles.rbac.authorization.k8s.io"
        )
        .await
    );
    assert!(!may(&server, "admins", "create", "nodes").await);
    assert!(!may(&server, "strangers", "list", "pods").await);
}

#[tokio::test]
async fn a_role_that_is_gathered_counts_wherever_it_is_gathered() {
    let server = ApiServer::new(Config::default());
    for role in ["view", "admin"] {
        bind(&server, role).await;
    }
    let widget = "widgets.example.com";
    assert!(!may(&server, "views", "list", widget).await);
    send(&server, Method::POST, ROLES, widgets()).await;
    // View gathers it, and admin what view has.
    assert!(may(&server, "views", "list", widget).await);
    assert!(may(&server, "admins", "list", widget).await);
    let view = send(&server, Method::GET, &format!("{ROLES}/view"), json!({})).await;
    let rules = view["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule == &widgets()["rules"][0]));
    let manager = &view["metadata"]["managedFields"][0];
    assert_eq!(manager["manager"], "clusterrole-aggregation-controller");
    // It goes as it came.
    send(
        &server,
        Method::DELETE,
        &format!("{ROLES}/widgets"),
        json!({}),
    )
    .await;
    assert!(!may(&server, "views", "list", widget).await);
    assert!(!may(&server, "admins", "list", widget).await);
    let view = send(&server, Method::GET, &format!("{ROLES}/view"), json!({})).await;
    assert!(!view["rules"].to_string().contains("widgets"));
}
