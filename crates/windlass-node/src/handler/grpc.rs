//! The health check of gRPC: one call of `grpc.health.v1.Health/Check`.
//!
//! Message and answer are a field each, so they are written and read by hand.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::{HandlerError, dial};

/// No answer is longer, and no more of one is under way.
const LONGEST: usize = 64 * 1024;
const WINDOW: u32 = 64 * 1024;
/// What a service answers that is well.
const SERVING: u8 = 1;

/// Asks a service for its health; the empty name is the server as a whole.
pub(crate) async fn check(host: &str, port: u16, service: &str) -> Result<(), HandlerError> {
    let stream = dial(host, port).await?;
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(TokioIo::new(stream))
        .await?;
    let request = http::Request::post(format!("http://{host}:{port}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.36")
        .body(Full::new(question(service)?))?;
    let asked = async {
        let response = sender.send_request(request).await?;
        let headers = response.headers().clone();
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        let body = body.map_err(HandlerError::Body)?;
        let trailers = body.trailers().cloned();
        Ok::<_, HandlerError>((headers, trailers.unwrap_or_default(), body.to_bytes()))
    };
    let mut asked = std::pin::pin!(asked);
    let (headers, trailers, answer) = tokio::select! {
        biased;
        answer = &mut asked => answer,
        _ = connection => asked.await,
    }?;
    // A call that fails at once has its trailers as headers.
    let said = |name: &str| {
        let value = trailers.get(name).or_else(|| headers.get(name));
        value
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    match said("grpc-status").as_deref() {
        Some("0") | None => {}
        Some("12") => return Err(HandlerError::NoHealth),
        Some(code) => {
            let message = said("grpc-message").unwrap_or_default();
            let code = code.to_owned();
            return Err(HandlerError::Rpc { code, message });
        }
    }
    match status(&answer) {
        Some(SERVING) => Ok(()),
        Some(other) => {
            let name = match other {
                2 => "NOT_SERVING",
                3 => "SERVICE_UNKNOWN",
                _ => "UNKNOWN",
            };
            Err(HandlerError::Unhealthy(name))
        }
        None => Err(HandlerError::Answer),
    }
}

/// A message with its length before it; its only field is the name.
fn question(service: &str) -> Result<Bytes, HandlerError> {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        let length = u8::try_from(service.len()).ok().filter(|n| *n < 0x80);
        message.push(length.ok_or(HandlerError::LongName)?);
        message.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(message.len()).map_err(|_| HandlerError::LongName)?;
    let mut frame = vec![0];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.append(&mut message);
    Ok(frame.into())
}

/// The status of an answer; left out it is unknown (zero).
fn status(answer: &[u8]) -> Option<u8> {
    match answer.get(5..)? {
        [] => Some(0),
        [0x08, status, ..] => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_and_the_answer_on_the_wire() {
        let question = question("shop").expect("a question");
        assert_eq!(&question[..], b"\0\0\0\0\x06\x0a\x04shop");
        assert_eq!(status(b"\0\0\0\0\x02\x08\x01"), Some(SERVING));
        assert_eq!(status(b"\0\0\0\0\0"), Some(0));
        assert_eq!(status(b"\0\0"), None);
    }
}
