//! Watches by WebSocket: each event is a text message, as kube-apiserver sends them.
//!
//! The client has nothing to say but that it goes. As the real server does, a request without an
//! `Origin` is refused: browsers send it, and other clients that watch so have learned to.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{SinkExt as _, StreamExt as _, TryStreamExt as _};
use http::header::{CONNECTION, HeaderName, HeaderValue, ORIGIN, UPGRADE};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use super::{Answer, Body};

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
/// How long a client may take to answer that the watch is over.
const FAREWELL: Duration = Duration::from_secs(30);

/// Whether a request asks to become a WebSocket.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    upgrade.is_some_and(|upgrade| upgrade.eq_ignore_ascii_case(b"websocket"))
        && values(headers, CONNECTION).any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

fn values(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).iter();
    values.filter_map(|value| value.to_str().ok())
}

/// Agrees with a client and sends it the events of `body`.
pub(super) fn carry(body: Body, connection: OnUpgrade, headers: &HeaderMap) -> Answer {
    let agreed = match agree(headers) {
        Ok(agreed) => agreed,
        Err((code, why)) => return Answer::text(code, why),
    };
    tokio::spawn(async move {
        match connection.await {
            Ok(upgraded) => {
                let io = TokioIo::new(upgraded);
                let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
                send_events(body, socket).await;
            }
            Err(error) => tracing::debug!(%error, "a watch was not upgraded"),
        }
    });
    Answer::switching(agreed)
}

/// The headers of the answer, or why there is no agreement.
fn agree(
    headers: &HeaderMap,
) -> Result<Vec<(HeaderName, HeaderValue)>, (StatusCode, &'static str)> {
    let bad = |why| (StatusCode::BAD_REQUEST, why);
    let key = headers.get(&KEY).filter(|key| !key.is_empty());
    let key = key.ok_or(bad("mismatch challenge/response"))?;
    if headers.get(&VERSION).is_none_or(|version| version != "13") {
        return Err(bad("missing or bad WebSocket Version"));
    }
    // An absolute URL, or a path.
    let origin = values(headers, ORIGIN).next().unwrap_or_default();
    if !origin.starts_with('/') && !origin.contains("://") {
        return Err((StatusCode::FORBIDDEN, ""));
    }
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let mut agreed = vec![
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (
            ACCEPT,
            accept.map_err(|_| bad("mismatch challenge/response"))?,
        ),
    ];
    let mut protocols = values(headers, PROTOCOL)
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty());
    if let Some(protocol) = protocols.next() {
        let protocol = HeaderValue::from_str(protocol).map_err(|_| bad("bad protocol"))?;
        // The events are the same by any name, so one that is asked for is the one that is spoken.
        if protocols.next().is_some() {
            return Err(bad(""));
        }
        agreed.push((PROTOCOL, protocol));
    }
    Ok(agreed)
}

async fn send_events<S>(body: Body, socket: WebSocketStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let mut chunks = body.into_data_stream();
    let mut lines = Lines::default();
    let sending = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            for line in lines.add(chunk) {
                sink.send(message(line)).await?;
            }
        }
        let normal = CloseFrame {
            code: CloseCode::Normal,
            reason: Utf8Bytes::from_static(""),
        };
        sink.send(Message::Close(Some(normal))).await
    };
    // A Close of the client is answered when what follows it is read: that it has gone.
    let mut hearing = std::pin::pin!(async { while let Ok(Some(_)) = stream.try_next().await {} });
    let sent: Result<(), tungstenite::Error> = tokio::select! {
        sent = sending => sent,
        () = &mut hearing => return,
    };
    match sent {
        Ok(()) => {
            let _ = tokio::time::timeout(FAREWELL, hearing).await;
        }
        Err(error) => tracing::debug!(%error, "the client of a watch is gone"),
    }
}

/// An event is JSON, which is text.
fn message(event: Bytes) -> Message {
    Utf8Bytes::try_from(event.clone()).map_or_else(|_| Message::Binary(event), Message::Text)
}

/// Chunks of a watch, put together to lines: each event is one.
#[derive(Default)]
struct Lines(BytesMut);

impl Lines {
    /// The lines that a chunk completes, each with its end.
    fn add(&mut self, mut chunk: Bytes) -> Vec<Bytes> {
        let mut lines = Vec::new();
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            let line = chunk.split_to(end + 1);
            if self.0.is_empty() {
                lines.push(line);
            } else {
                self.0.extend_from_slice(&line);
                lines.push(self.0.split().freeze());
            }
        }
        self.0.extend_from_slice(&chunk);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_come() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for chunk in ["one\ntw", "o", "\n", "three\nfour\n"] {
            seen.extend(lines.add(Bytes::from_static(chunk.as_bytes())));
        }
        assert_eq!(seen, ["one\n", "two\n", "three\n", "four\n"]);
    }

    #[test]
    fn handshake_without_an_origin_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        headers.insert(VERSION, HeaderValue::from_static("13"));
        assert_eq!(
            agree(&headers).map_err(|(code, _)| code),
            Err(StatusCode::FORBIDDEN)
        );
        headers.insert(ORIGIN, HeaderValue::from_static("https://localhost"));
        headers.insert(PROTOCOL, HeaderValue::from_static("v4.channel.k8s.io"));
        let agreed: HeaderMap = agree(&headers).unwrap().into_iter().collect();
        assert_eq!(agreed[&ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(agreed[&PROTOCOL], "v4.channel.k8s.io");
    }
}
