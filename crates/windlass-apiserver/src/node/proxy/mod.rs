//! `pods|services|nodes/<[scheme:]name[:port]>/proxy[/path]`: requests that are passed on to what
//! runs in the cluster, with any method, and the connection itself where it is to become something
//! else.
//!
//! As in Kubernetes: a path that is left out is answered with a redirect to `/`; redirects and links
//! in HTML that lead to the same host lead through the proxy; the server's own credentials and those
//! of the client stay here.

mod address;
mod html;
mod path;
mod send;
mod target;

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{HOST, HeaderValue, LOCATION};
use http::{Method, StatusCode, Uri, request};
use http_body_util::combinators::UnsyncBoxBody;

use super::Upgrade;
use crate::http::{Answer, ResourceRequest, Verb, percent_decode};
use crate::server::ApiServer;
use crate::status::{ApiError, Result};
use path::Paths;
pub(crate) use target::Proxied;
use target::Target;

/// The name of the subresource.
pub(crate) const PROXY: &str = "proxy";
/// The methods that are passed on.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
];

/// Why a body broke off.
type Broken = Box<dyn std::error::Error + Send + Sync>;
/// What a client sends.
pub(super) type Sent = UnsyncBoxBody<Bytes, Broken>;

/// Where a connection comes from; an extension of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// A request that is passed on.
pub(crate) struct Passed<'a> {
    /// To what.
    pub(crate) proxied: Proxied,
    pub(crate) parts: &'a request::Parts,
    pub(crate) body: Sent,
    /// The connection, when it is to become something else.
    pub(crate) upgrade: &'a Upgrade,
}

/// Passes a request on, and what is answered back.
pub(crate) async fn proxy(
    server: &ApiServer,
    asked: &ResourceRequest,
    passed: Passed<'_>,
) -> Result<Answer> {
    let Passed {
        proxied,
        parts,
        body,
        upgrade,
    } = passed;
    if !METHODS.contains(&parts.method) {
        return Err(ApiError::method_not_allowed());
    }
    if asked.name.as_deref() == Some("") {
        return Err(ApiError::bad_request("name must be provided"));
    }
    let is_nowhere = proxied != Proxied::Node && asked.namespace.is_none();
    if is_nowhere || asked.verb == Verb::Watch {
        return Err(ApiError::resource_not_found());
    }
    let target = Target::find(server, proxied, asked)?;
    let asked_path = percent_decode(parts.uri.path(), false).unwrap_or_default();
    let paths = Paths::of(&asked_path);
    let connection = send::asks_for_another(&parts.headers)
        .then(|| upgrade.take())
        .flatten();
    if let Some(connection) = connection {
        return send::upgrade(target, &paths, parts, connection).await;
    }
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if reads && paths.location.is_empty() {
        return redirect_to_root(&asked_path, &parts.uri);
    }
    send::pass_on(target, &paths, parts, body).await
}

/// Links that are relative to a page without a slash at its end would lead elsewhere.
fn redirect_to_root(asked: &str, uri: &Uri) -> Result<Answer> {
    let query = uri.query().map(|query| format!("?{query}"));
    let to = format!("{asked}/{}", query.unwrap_or_default());
    let to = HeaderValue::from_bytes(to.as_bytes())
        .map_err(|_| ApiError::bad_request("the path cannot be written into a header"))?;
    Ok(Answer::headers(
        StatusCode::MOVED_PERMANENTLY,
        vec![(LOCATION, to)],
    ))
}

/// The host that the client believes to talk to.
fn host_of(parts: &request::Parts) -> HeaderValue {
    let named = parts.headers.get(HOST).cloned();
    let authority = || parts.uri.authority().map(|it| it.as_str().to_owned());
    named
        .or_else(|| HeaderValue::from_str(&authority()?).ok())
        .unwrap_or_else(|| HeaderValue::from_static("localhost"))
}
