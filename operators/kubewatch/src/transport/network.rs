//! Sending over the network: one connection for each message.

use std::time::Duration;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Outgoing, Post, SendError, Transport, smtp, tls};

/// How long one message may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How much of an answer is read.
const ANSWER: usize = 64 * 1024;
/// What Slack says of a message that it will never accept.
const HOPELESS: [&str; 5] = [
    "invalid_attachments",
    "invalid_blocks",
    "msg_too_long",
    "no_text",
    "too_many_attachments",
];

/// The network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

#[async_trait]
impl Transport for Network {
    async fn send(&self, outgoing: &Outgoing) -> Result<(), SendError> {
        let sent = async {
            match outgoing {
                Outgoing::Post(request) => post(request).await,
                Outgoing::Mail(mail) => smtp::send(mail).await,
            }
        };
        let late = |_| SendError::Failed(format!("no answer within {LIMIT:?}"));
        timeout(LIMIT, sent).await.map_err(late)?
    }
}

/// A failure that may pass.
pub(super) fn failed(what: &str, error: impl std::fmt::Display) -> SendError {
    SendError::Failed(format!("{what}: {error}"))
}

async fn post(of: &Post) -> Result<(), SendError> {
    // The text of the error could hold the URL.
    let uri: Uri = of
        .url
        .parse()
        .map_err(|_| SendError::Failed("invalid URL".to_owned()))?;
    let (Some(host), Some(scheme)) = (uri.host(), uri.scheme_str()) else {
        return Err(SendError::Failed("the URL has no host".to_owned()));
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_secure = scheme == "https";
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.map_err(|error| failed("connect", error))?;
    if is_secure {
        exchange(tls::connect(stream, host, &of.trust).await?, of, &uri).await
    } else {
        exchange(stream, of, &uri).await
    }
}

async fn exchange<S>(stream: S, of: &Post, uri: &Uri) -> Result<(), SendError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| failed("HTTP", error))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path)
        .header(
            HOST,
            uri.authority().map_or("", |authority| authority.as_str()),
        )
        .header(
            USER_AGENT,
            concat!("kubewatch-operator/", env!("CARGO_PKG_VERSION")),
        )
        .header(CONTENT_TYPE, of.content_type);
    if let Some(authorization) = &of.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Full::new(Bytes::from(of.body.clone())));
    let request = request.map_err(|_| SendError::Failed("invalid request".to_owned()))?;
    let answered = async {
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| failed("HTTP", error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER).collect().await;
        let body = body
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        Ok::<_, SendError>((status, body))
    };
    tokio::pin!(answered, connection);
    let (status, body) = tokio::select! {
        answered = &mut answered => answered?,
        // A connection that has ended may have brought the answer.
        _ = &mut connection => answered.await?,
    };
    judge(status, &body)
}

/// Whether an answer means that the message was accepted.
fn judge(status: StatusCode, body: &[u8]) -> Result<(), SendError> {
    match status {
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => Err(SendError::Refused(status.to_string())),
        status if !status.is_success() => Err(SendError::Failed(status.to_string())),
        // Slack's API says in the body what it thinks.
        _ => match serde_json::from_slice::<Value>(body) {
            Ok(answer) if answer["ok"] == false => {
                let error = answer["error"].as_str().unwrap_or("not ok").to_owned();
                if HOPELESS.contains(&error.as_str()) {
                    Err(SendError::Refused(error))
                } else {
                    Err(SendError::Failed(error))
                }
            }
            _ => Ok(()),
        },
    }
}
