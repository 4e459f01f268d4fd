//! Commands in containers, attaching to them, and port-forwarding: connections that stop being HTTP.
//!
//! The server decides who may and where to; then the client and the node agree on a protocol by
//! themselves: a WebSocket or SPDY.

use std::sync::{Mutex, PoisonError};

use http::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::relay::relay;
use super::{address_of, client, container_of, encode};
use crate::http::{Answer, Query};
use crate::status::{ApiError, Result};
use crate::verbs::Call;

/// What a connection can become.
const UPGRADES: [&str; 2] = ["websocket", "SPDY/3.1"];
/// The headers with which both ends agree.
static AGREEMENT: [HeaderName; 7] = [
    UPGRADE,
    HeaderName::from_static("x-stream-protocol-version"),
    HeaderName::from_static("sec-websocket-key"),
    HeaderName::from_static("sec-websocket-version"),
    HeaderName::from_static("sec-websocket-protocol"),
    HeaderName::from_static("sec-websocket-accept"),
    HeaderName::from_static("sec-websocket-extensions"),
];

/// The connection of a request that asks for it to become something else.
#[derive(Debug, Default)]
pub(crate) struct Upgrade(Mutex<Option<OnUpgrade>>);

impl Upgrade {
    /// Takes the connection of a request that asks.
    pub(crate) fn of<B>(request: &mut Request<B>) -> Self {
        let asked = request.headers().contains_key(UPGRADE);
        Self(Mutex::new(asked.then(|| hyper::upgrade::on(request))))
    }

    /// The connection, once.
    pub(crate) fn take(&self) -> Option<OnUpgrade> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.take()
    }
}

/// `…/pods/<name>/exec`, `attach` and `portforward`.
pub(crate) async fn connect(call: &Call<'_>, what: &str) -> Result<Answer> {
    // Whoever may do it by one verb must be allowed the other, too.
    if call.authorize_create().is_err() {
        return Err(ApiError::forbidden(
            call.resource.subject(),
            call.name(),
            "",
        ));
    }
    let pod = call.find()?.value();
    let path = if what == "portforward" {
        let ports = encode(&call.query.all("ports").join(","));
        let (namespace, name) = (call.namespace(), call.name());
        format!("/portForward/{namespace}/{name}?port={ports}")
    } else {
        let container = container_of(&pod, call)?;
        let query = parameters(&call.query);
        let (namespace, name) = (call.namespace(), call.name());
        format!("/{what}/{namespace}/{name}/{container}?{query}")
    };
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(ApiError::bad_request(format!(
            "pod {} does not have a host assigned",
            call.name()
        )));
    }
    let address = address_of(call, node)?;
    let Some(connection) = call.upgrade.take() else {
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let wanted = call.headers().get(UPGRADE).map(HeaderValue::as_bytes);
    let is_wanted =
        |known: &str| wanted.is_some_and(|it| it.eq_ignore_ascii_case(known.as_bytes()));
    if !UPGRADES.into_iter().any(is_wanted) {
        let known = UPGRADES.join(" and ");
        return Err(ApiError::bad_request(format!(
            "unable to upgrade the connection: {known} are offered here"
        )));
    }
    let headers: Vec<(HeaderName, HeaderValue)> = agreement(call.headers());
    let dialled = client(call, node)?.send(&address, &path, &headers).await;
    let dialled = dialled.map_err(|error| unreachable(&error))?;
    if dialled.status() != StatusCode::SWITCHING_PROTOCOLS {
        let code = dialled.status();
        let said = dialled.into_body().collect().await;
        let said = said.map(http_body_util::Collected::to_bytes);
        let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
        let reason = match code {
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::BAD_REQUEST => "BadRequest",
            _ => "InternalError",
        };
        let message = format!("unable to upgrade connection: {}", said.trim());
        return Err(ApiError::new(code, reason, message));
    }
    let agreed = agreement(dialled.headers());
    let node = hyper::upgrade::on(dialled);
    tokio::spawn(async move {
        match futures::try_join!(connection, node) {
            Ok((client, node)) => {
                relay(TokioIo::new(client), TokioIo::new(node)).await;
            }
            Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
        }
    });
    Ok(Answer::switching(agreed))
}

fn unreachable(error: &str) -> ApiError {
    ApiError::without_reason(format!("error dialing backend: {error}"))
}

/// The parameters as the node calls them.
fn parameters(query: &Query) -> String {
    let flags = [
        ("stdin", "input"),
        ("stdout", "output"),
        ("stderr", "error"),
        ("tty", "tty"),
    ];
    let commands = query.all("command").iter();
    let commands = commands.map(|word| format!("command={}", encode(word)));
    let flags = flags
        .into_iter()
        .filter(|(name, _)| query.flag(name))
        .map(|(_, name)| format!("{name}=1"));
    commands.chain(flags).collect::<Vec<_>>().join("&")
}

/// The headers that client and node need of each other.
fn agreement(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let fixed = [(CONNECTION, HeaderValue::from_static("Upgrade"))];
    let told = AGREEMENT.iter().flat_map(|name| {
        let values = headers.get_all(name).iter();
        values.map(|value| (name.clone(), value.clone()))
    });
    fixed.into_iter().chain(told).collect()
}
