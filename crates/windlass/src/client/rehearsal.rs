//! Rehearsal: an operator that goes through everything and changes nothing.
//!
//! Every write is sent with `dryRun=All`: the API server authorizes, defaults, validates and admits
//! it, answers what would be, and stores nothing. What has no such form is not sent at all. What
//! would have changed is told in the log.

use http::{Method, Request, Uri, uri::PathAndQuery};
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use crate::kind::KindInfo;

/// Subresources through which something happens that the API server only passes on.
const PASSED_ON: [&str; 4] = ["exec", "attach", "portforward", "proxy"];
/// How many changes of one object are told.
const TOLD: usize = 20;
/// Fields that the server keeps, and that no one asks about.
const NOISE: [&str; 6] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "selfLink",
];

/// A request cannot be rehearsed, and was not sent.
#[derive(Debug, thiserror::Error)]
#[error("cannot rehearse {0}: the API server would really do it, so it was not sent")]
pub(crate) struct NotRehearsed(String);

/// The request as one that changes nothing.
pub(super) async fn rehearsed(request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    if path
        .rsplit('/')
        .take(2)
        .any(|part| PASSED_ON.contains(&part))
    {
        return Err(NotRehearsed(format!("{method} {path}")).into());
    }
    if matches!(method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(request);
    }
    let (mut head, body) = request.into_parts();
    head.uri = with_dry_run(&head.uri)?;
    // The options of a delete are in its body, if it has one, and only there.
    if method != Method::DELETE {
        return Ok(Request::from_parts(head, body));
    }
    let bytes = body.collect_bytes().await?;
    if bytes.is_empty() {
        return Ok(Request::from_parts(head, bytes.into()));
    }
    let mut options: Value = serde_json::from_slice(&bytes)?;
    options["dryRun"] = json!(["All"]);
    let body = serde_json::to_vec(&options)?.into();
    Ok(Request::from_parts(head, body))
}

fn with_dry_run(uri: &Uri) -> Result<Uri, BoxError> {
    let query = uri.query().unwrap_or_default();
    let rest = query
        .split('&')
        .filter(|term| !term.is_empty() && !term.starts_with("dryRun="));
    let query: Vec<&str> = rest.chain(["dryRun=All"]).collect();
    let path = PathAndQuery::try_from(format!("{}?{}", uri.path(), query.join("&")))?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Ok(Uri::from_parts(parts)?)
}

/// What an answer says would be different, as lines for people. Of a Secret only the fields are
/// named.
pub(super) fn changes(kind: &KindInfo, before: &Value, after: &Value) -> Vec<String> {
    let secret = kind.group.is_empty() && kind.kind == "Secret";
    let mut lines = Vec::new();
    compare("", before, after, secret, &mut lines);
    if lines.len() > TOLD {
        let more = lines.len() - TOLD;
        lines.truncate(TOLD);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn compare(path: &str, before: &Value, after: &Value, secret: bool, lines: &mut Vec<String>) {
    let empty = Value::Null;
    if let (Value::Object(old), Value::Object(new)) = (before, after) {
        let added = new.keys().filter(|name| !old.contains_key(*name));
        for name in old.keys().chain(added) {
            if path == "metadata" && NOISE.contains(&name.as_str())
                || path.is_empty() && ["apiVersion", "kind"].contains(&name.as_str())
            {
                continue;
            }
            let dot = if path.is_empty() { "" } else { "." };
            let below = format!("{path}{dot}{name}");
            let (old, new) = (old.get(name), new.get(name));
            compare(
                &below,
                old.unwrap_or(&empty),
                new.unwrap_or(&empty),
                secret,
                lines,
            );
        }
        return;
    }
    if before == after {
        return;
    }
    lines.push(match (before, after) {
        _ if secret => format!("{path} changes"),
        (Value::Null, after) => format!("{path}: {after}"),
        (before, Value::Null) => format!("{path}: {before} goes"),
        (before, after) => format!("{path}: {before} becomes {after}"),
    });
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;

    fn request(method: Method, uri: &str, body: &str) -> Request<Body> {
        let body = Body::from(body.as_bytes().to_vec());
        Request::builder()
            .method(method)
            .uri(uri)
            .body(body)
            .unwrap()
    }

    #[tokio::test]
    async fn every_write_asks_for_a_dry_run() {
        let uri = "https://h:1/api/v1/namespaces/n/configmaps/a?fieldManager=x&force=true";
        for method in [Method::PATCH, Method::PUT, Method::POST] {
            let sent = rehearsed(request(method, uri, "{}")).await.unwrap();
            assert_eq!(sent.uri().to_string(), format!("{uri}&dryRun=All"));
        }
        let read = rehearsed(request(Method::GET, uri, "")).await.unwrap();
        assert_eq!(read.uri().to_string(), uri);
    }

    #[tokio::test]
    async fn the_options_of_a_delete_are_in_its_body() {
        let body = r#"{"propagationPolicy":"Background","dryRun":[]}"#;
        let sent = rehearsed(request(Method::DELETE, "/api/v1/pods/a", body)).await;
        let bytes = sent.unwrap().into_body().collect_bytes().await.unwrap();
        let options: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            options,
            json!({"propagationPolicy": "Background", "dryRun": ["All"]})
        );
        let sent = rehearsed(request(Method::DELETE, "/api/v1/pods/a", "")).await;
        assert_eq!(sent.unwrap().uri(), "/api/v1/pods/a?dryRun=All");
    }

    #[tokio::test]
    async fn what_cannot_be_rehearsed_is_not_sent() {
        for path in [
            "/api/v1/namespaces/n/pods/a/exec?command=rm",
            "/api/v1/nodes/a/proxy/x",
        ] {
            let refused = rehearsed(request(Method::POST, path, "")).await;
            assert!(refused.unwrap_err().to_string().contains("cannot rehearse"));
        }
    }

    #[test]
    fn changes_are_told_by_field_and_secrets_are_kept() {
        let before = json!({
            "metadata": {"name": "a", "resourceVersion": "1", "labels": {"old": "x"}},
            "data": {"a": "1", "b": "2"},
        });
        let after = json!({
            "metadata": {"name": "a", "resourceVersion": "2", "labels": {}},
            "data": {"a": "1", "b": "3", "c": "4"},
        });
        let of = |kind| changes(&kind, &before, &after);
        assert_eq!(
            of(KindInfo::of::<ConfigMap>()),
            [
                r#"data.b: "2" becomes "3""#,
                r#"data.c: "4""#,
                r#"metadata.labels.old: "x" goes"#,
            ]
        );
        assert_eq!(
            of(KindInfo::of::<Secret>()),
            [
                "data.b changes",
                "data.c changes",
                "metadata.labels.old changes"
            ]
        );
    }
}
