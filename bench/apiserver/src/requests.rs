//! The requests that are sent, as bytes.

use serde_json::{Value, json};

/// Where the objects of the load are.
pub(crate) const NAMESPACE: &str = "bench";
/// How many there are when reads are measured.
pub(crate) const OBJECTS: usize = 10_000;
const DATA_BYTES: usize = 200;

fn configmaps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn request(method: &str, path: &str, token: Option<&str>, body: &str) -> Vec<u8> {
    let token = token.map_or_else(String::new, |token| {
        format!("authorization: Bearer {token}\r\n")
    });
    let kind = if body.is_empty() {
        ""
    } else {
        "content-type: application/json\r\n"
    };
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nuser-agent: bench\r\naccept: application/json\r\n{token}{kind}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

pub(crate) fn post(path: &str, body: &Value) -> Vec<u8> {
    request("POST", path, None, &body.to_string())
}

pub(crate) fn name(number: usize) -> String {
    format!("object-{number:06}")
}

/// An object of the load.
fn object(name: &str, data: &str) -> String {
    let filling = "x".repeat(DATA_BYTES.saturating_sub(data.len()));
    format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"{name}\",\"labels\":{{\"app\":\"bench\"}}}},\"data\":{{\"count\":\"{data}\",\"filling\":\"{filling}\"}}}}"
    )
}

pub(crate) fn create(namespace: &str, name: &str) -> Vec<u8> {
    request("POST", &configmaps(namespace), None, &object(name, ""))
}

pub(crate) fn update(name: &str, count: usize) -> Vec<u8> {
    let path = format!("{}/{name}", configmaps(NAMESPACE));
    request("PUT", &path, None, &object(name, &count.to_string()))
}

pub(crate) fn get(name: &str, token: Option<&str>) -> Vec<u8> {
    let path = format!("{}/{name}", configmaps(NAMESPACE));
    request("GET", &path, token, "")
}

pub(crate) fn list() -> Vec<u8> {
    request("GET", &configmaps(NAMESPACE), None, "")
}

/// A watch of a namespace of its own, from now on.
pub(crate) fn watch() -> Vec<u8> {
    let path = format!("{}?watch=1", configmaps(WATCHED));
    request("GET", &path, None, "")
}

/// The namespace of the watchers.
pub(crate) const WATCHED: &str = "watched";

/// An object for the watchers that says when it was sent.
pub(crate) fn create_watched(number: usize, field: &str, sent: &str) -> Vec<u8> {
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name(number)},
        "data": {field: sent, "filling": "x".repeat(DATA_BYTES)},
    });
    post(&configmaps(WATCHED), &body)
}
