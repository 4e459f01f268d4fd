//! Turning a request into a WebSocket.

use std::future::Future;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{Body, text, whole};

const KEY: &str = "sec-websocket-key";
const PROTOCOL: &str = "sec-websocket-protocol";
const ACCEPT: &str = "sec-websocket-accept";
/// A larger message is none of kubectl's.
const LONGEST: usize = 16 * 1024 * 1024;

/// A WebSocket with the API server, and through it with the client.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Agrees on one of the protocols and answers; `converse` goes on with the socket.
pub(super) fn upgrade<F>(
    mut request: Request<Incoming>,
    protocols: &[&'static str],
    converse: impl FnOnce(Socket, &'static str) -> F + Send + 'static,
) -> Response<Body>
where
    F: Future<Output = ()> + Send,
{
    let headers = request.headers();
    let asks = has_token(headers, UPGRADE.as_str(), "websocket");
    let (true, Some(key)) = (asks, headers.get(KEY)) else {
        let message = "unable to upgrade: only a WebSocket is offered here (kubectl 1.32 or newer)";
        return text(StatusCode::BAD_REQUEST, message);
    };
    let chosen = protocols
        .iter()
        .copied()
        .find(|protocol| has_token(headers, PROTOCOL, protocol));
    let Some(protocol) = chosen else {
        let message = format!(
            "unable to upgrade: the subprotocols that are spoken here are {}",
            protocols.join(", ")
        );
        return text(StatusCode::BAD_REQUEST, message);
    };
    let accept = derive_accept_key(key.as_bytes());
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        match upgraded.await {
            Ok(upgraded) => {
                let config = WebSocketConfig::default()
                    .max_message_size(Some(LONGEST))
                    .max_frame_size(Some(LONGEST));
                let io = TokioIo::new(upgraded);
                let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
                converse(socket, protocol).await;
            }
            Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
        }
    });
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(PROTOCOL, HeaderValue::from_static(protocol));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(ACCEPT, accept);
    }
    response
}

/// Whether one of the values of a header is this one.
fn has_token(headers: &HeaderMap, name: &str, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim().eq_ignore_ascii_case(token))
}
