//! Turning a request into something else: a WebSocket, or a connection that carries SPDY.

use std::future::Future;

use http::header::{CONNECTION, HeaderName, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{Body, text, whole};

const SPDY: &str = "SPDY/3.1";
const KEY: &str = "sec-websocket-key";
const PROTOCOL: &str = "sec-websocket-protocol";
const ACCEPT: &str = "sec-websocket-accept";
/// By which clients and servers agree on what the streams of a SPDY connection mean.
const VERSION: &str = "x-stream-protocol-version";
const ACCEPTED: &str = "x-accepted-stream-protocol-versions";
/// A larger message is none of kubectl's.
const LONGEST: usize = 16 * 1024 * 1024;

/// A connection with the API server, and through it with the client.
pub(super) type Io = TokioIo<Upgraded>;
/// A WebSocket over it.
pub(super) type Socket = WebSocketStream<Io>;

/// What is spoken here: subprotocols, the preferred first. The empty one is that of a client that
/// names none.
pub(super) struct Offers {
    pub(super) socket: &'static [&'static str],
    pub(super) spdy: &'static [&'static str],
}

/// What a request has become.
pub(super) enum Conversation {
    /// A WebSocket, and its subprotocol.
    Socket(Box<Socket>, &'static str),
    /// A connection that carries SPDY.
    Spdy(Io),
}

/// What is to become of a request, and how the client is answered.
enum Agreement {
    Socket(&'static str),
    Spdy,
}

/// Agrees on one of the protocols and answers; `converse` goes on with it.
pub(super) fn upgrade<F>(
    mut request: Request<Incoming>,
    offers: &Offers,
    converse: impl FnOnce(Conversation) -> F + Send + 'static,
) -> Response<Body>
where
    F: Future<Output = ()> + Send,
{
    let (agreement, response) = match agree(request.headers(), offers) {
        Ok(agreed) => agreed,
        Err(refusal) => return *refusal,
    };
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        match upgraded.await {
            Ok(upgraded) => {
                let io = TokioIo::new(upgraded);
                converse(match agreement {
                    Agreement::Socket(protocol) => {
                        let config = WebSocketConfig::default()
                            .max_message_size(Some(LONGEST))
                            .max_frame_size(Some(LONGEST));
                        let socket =
                            WebSocketStream::from_raw_socket(io, Role::Server, Some(config));
                        Conversation::Socket(Box::new(socket.await), protocol)
                    }
                    Agreement::Spdy => Conversation::Spdy(io),
                })
                .await;
            }
            Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
        }
    });
    response
}

/// Whether a request will become a WebSocket of another subprotocol than `tunnel`.
pub(super) fn prefers_channels(request: &Request<Incoming>, offers: &Offers, tunnel: &str) -> bool {
    let agreed = agree(request.headers(), offers);
    matches!(agreed, Ok((Agreement::Socket(protocol), _)) if protocol != tunnel)
}

fn agree(
    headers: &HeaderMap,
    offers: &Offers,
) -> Result<(Agreement, Response<Body>), Box<Response<Body>>> {
    if let Some(key) = headers.get(KEY)
        && tokens(headers, UPGRADE.as_str()).any(|token| token.eq_ignore_ascii_case("websocket"))
    {
        return agree_on_socket(headers, key, offers.socket);
    }
    if tokens(headers, UPGRADE.as_str()).any(|token| token.eq_ignore_ascii_case(SPDY)) {
        return agree_on_spdy(headers, offers.spdy);
    }
    let message = "unable to upgrade: a WebSocket and SPDY/3.1 are offered here";
    Err(Box::new(text(StatusCode::BAD_REQUEST, message)))
}

fn agree_on_socket(
    headers: &HeaderMap,
    key: &HeaderValue,
    offers: &'static [&'static str],
) -> Result<(Agreement, Response<Body>), Box<Response<Body>>> {
    let mut asked = tokens(headers, PROTOCOL).peekable();
    let names_none = asked.peek().is_none();
    let asked: Vec<&str> = asked.collect();
    let is_asked = |offer: &&str| asked.contains(offer) || (names_none && offer.is_empty());
    let Some(protocol) = offers.iter().copied().find(is_asked) else {
        let message = format!(
            "unable to upgrade: the subprotocols that are spoken here are {}",
            offers.join(", ")
        );
        return Err(Box::new(text(StatusCode::BAD_REQUEST, message)));
    };
    let mut response = switching("websocket");
    let headers = response.headers_mut();
    if !protocol.is_empty() {
        headers.insert(PROTOCOL, HeaderValue::from_static(protocol));
    }
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(ACCEPT, accept);
    }
    Ok((Agreement::Socket(protocol), response))
}

/// The client's first choice counts, as with kubelet.
fn agree_on_spdy(
    headers: &HeaderMap,
    offers: &'static [&'static str],
) -> Result<(Agreement, Response<Body>), Box<Response<Body>>> {
    let asked: Vec<&str> = tokens(headers, VERSION).collect();
    let chosen = asked
        .iter()
        .find_map(|asked| offers.iter().find(|offer| *offer == asked));
    let Some(chosen) = chosen else {
        let message = format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
            asked.join(" "),
            offers.join(" ")
        );
        let mut refusal = text(StatusCode::FORBIDDEN, message);
        for offer in offers {
            let name = HeaderName::from_static(ACCEPTED);
            refusal
                .headers_mut()
                .append(name, HeaderValue::from_static(offer));
        }
        return Err(Box::new(refusal));
    };
    let mut response = switching(SPDY);
    let name = HeaderName::from_static(VERSION);
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(chosen));
    Ok((Agreement::Spdy, response))
}

fn switching(to: &'static str) -> Response<Body> {
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(to));
    response
}

/// The values of a header.
fn tokens<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERS: Offers = Offers {
        socket: &["v5.channel.k8s.io", "v4.channel.k8s.io", ""],
        spdy: &["v4.channel.k8s.io"],
    };

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        pairs.collect()
    }

    fn socket(asked: &'static str) -> Option<&'static str> {
        let mut headers = headers(&[("upgrade", "WebSocket"), (KEY, "dGhlIHNhbXBsZSBub25jZQ==")]);
        if !asked.is_empty() {
            headers.insert(PROTOCOL, HeaderValue::from_static(asked));
        }
        match agree(&headers, &OFFERS) {
            Ok((Agreement::Socket(protocol), _)) => Some(protocol),
            _ => None,
        }
    }

    #[test]
    fn socket_has_the_newest_subprotocol_that_both_know() {
        assert_eq!(
            socket("v4.channel.k8s.io, v5.channel.k8s.io"),
            Some("v5.channel.k8s.io")
        );
        assert_eq!(
            socket("channel.k8s.io,v4.channel.k8s.io"),
            Some("v4.channel.k8s.io")
        );
        assert_eq!(socket(""), Some(""));
        assert_eq!(socket("channel.k8s.io"), None);
    }

    #[test]
    fn spdy_without_a_common_protocol_names_those_that_are_known() {
        let asked = headers(&[("upgrade", "SPDY/3.1"), (VERSION, "v3.channel.k8s.io")]);
        let Err(refusal) = agree(&asked, &OFFERS) else {
            panic!("agreed");
        };
        assert_eq!(refusal.status(), StatusCode::FORBIDDEN);
        assert_eq!(refusal.headers()[ACCEPTED], "v4.channel.k8s.io");
        let mut asked = asked;
        asked.append(VERSION, HeaderValue::from_static("v4.channel.k8s.io"));
        let Ok((_, response)) = agree(&asked, &OFFERS) else {
            panic!("no agreement");
        };
        assert_eq!(response.headers()[VERSION], "v4.channel.k8s.io");
        assert_eq!(response.headers()[UPGRADE], SPDY);
    }
}
