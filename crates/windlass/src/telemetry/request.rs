//! [`Request`]: the span of a request to the API server.

use http::Method;
use opentelemetry::trace::Status;
use tracing::{Span, field::Empty, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// A request to the API server. Its span ends when the answer begins; the answer to a watch goes on.
pub(crate) struct Request(Span);

impl Request {
    pub(crate) fn new<B>(request: &http::Request<B>) -> Self {
        let (path, query) = (request.uri().path(), request.uri().query());
        let Target { resource, named } = Target::of(path);
        let verb = verb(request.method(), query.unwrap_or_default(), named);
        Self(info_span!(
            "request",
            otel.kind = "client",
            verb,
            resource,
            "url.path" = path,
            "http.request.method" = request.method().as_str(),
            "http.response.status_code" = Empty,
        ))
    }

    /// What the request is sent in.
    pub(crate) fn span(&self) -> Span {
        self.0.clone()
    }

    /// It was answered; none if there was no answer.
    pub(crate) fn answered(&self, code: Option<u16>) {
        if let Some(code) = code {
            self.0.record("http.response.status_code", code);
        }
        if code.is_none_or(|code| code >= 400) {
            self.0.set_status(Status::error(""));
        }
    }
}

/// What a path of the API names.
struct Target<'a> {
    /// The resource, such as `configmaps`; empty for what is no object.
    resource: &'a str,
    /// Whether it is one object.
    named: bool,
}

impl<'a> Target<'a> {
    fn of(path: &'a str) -> Self {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        // The version, after the group where there is one.
        let skipped = match parts.next() {
            Some("api") => 1,
            Some("apis") => 2,
            _ => usize::MAX,
        };
        let mut parts = parts.skip(skipped).peekable();
        let mut resource = parts.next().unwrap_or_default();
        let mut named = parts.next().is_some();
        // An object of a namespace, unless it is the namespace itself or its subresource.
        if resource == "namespaces"
            && named
            && let Some(inner) = parts.next()
            && !matches!(inner, "status" | "finalize")
        {
            resource = inner;
            named = parts.next().is_some();
        }
        Self { resource, named }
    }
}

/// The verb of the request, as roles spell it.
fn verb(method: &Method, query: &str, named: bool) -> &'static str {
    let watches = query
        .split('&')
        .any(|one| matches!(one, "watch" | "watch=true" | "watch=1"));
    match (method.as_str(), named) {
        ("GET" | "HEAD", _) if watches => "watch",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &Method, path: &str, query: &str) -> (&'static str, String) {
        let Target { resource, named } = Target::of(path);
        (verb(method, query, named), resource.to_owned())
    }

    #[test]
    fn request_is_named_by_verb_and_resource() {
        let maps = "/api/v1/namespaces/n/configmaps";
        let one = format!("{maps}/a");
        let page = "/apis/example.com/v1/namespaces/n/pages/p/status";
        for (method, path, query, verb, resource) in [
            (Method::GET, maps, "limit=1", "list", "configmaps"),
            (
                Method::GET,
                maps,
                "limit=1&watch=true",
                "watch",
                "configmaps",
            ),
            (Method::GET, &one, "", "get", "configmaps"),
            (Method::PATCH, page, "", "patch", "pages"),
            (
                Method::POST,
                "/apis/example.com/v1/pages",
                "",
                "create",
                "pages",
            ),
            (Method::GET, "/api/v1/namespaces/n", "", "get", "namespaces"),
            (
                Method::PUT,
                "/api/v1/namespaces/n/finalize",
                "",
                "update",
                "namespaces",
            ),
            (
                Method::DELETE,
                "/api/v1/nodes",
                "",
                "deletecollection",
                "nodes",
            ),
        ] {
            let known = of(&method, path, query);
            assert_eq!(known, (verb, resource.to_owned()), "{method} {path}");
        }
    }
}
