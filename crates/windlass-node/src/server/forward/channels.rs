//! Ports of a pod by WebSocket: two channels for each port, one for data and one on which the
//! client reads what went wrong. On each the server first says the number of the port.
//!
//! The protocol has no end of one channel, so the conversation ends when all connections have.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::SplitSink;
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::{Mutex, mpsc};
use tokio_tungstenite::tungstenite::Message;

use super::{CHUNK, UNSENT, send_to_pod};
use crate::runtime::{Connection, Runtime};
use crate::server::farewell::leave_socket;
use crate::server::query;
use crate::server::upgrade::Socket;

/// What each message is: the number of a channel in a byte, or in a digit and the rest in base64.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Binary,
    Base64,
}

/// The ports of a query, in order; an error when there are none, or one is none.
pub(super) fn ports(query: &str) -> Result<Vec<u16>, String> {
    let values = query::all(query, "port");
    let values: Vec<&str> = values.iter().flat_map(|value| value.split(',')).collect();
    if values.iter().all(|value| value.is_empty()) {
        return Err("query parameter \"port\" is required".to_owned());
    }
    let read = |value: &&str| {
        let port = value.trim().parse().ok().filter(|port| *port > 0);
        port.ok_or_else(|| format!("unable to parse {value:?} as a port"))
    };
    values.iter().map(read).collect()
}

/// Carries one connection to each port until all have ended, or the client goes.
pub(super) async fn carry<R: Runtime>(
    socket: Socket,
    form: Form,
    ports: Vec<u16>,
    runtime: Arc<R>,
    uid: String,
) {
    let (sink, mut stream) = socket.split();
    let voice = Voice {
        sink: Mutex::new(sink),
        form,
    };
    let mut upstreams = Vec::new();
    let mut tunnels = Vec::new();
    for (port, number) in ports.into_iter().zip((0..=u8::MAX).step_by(2)) {
        let (upstream, bytes) = mpsc::channel(UNSENT);
        upstreams.push(upstream);
        tunnels.push(tunnel(&voice, number, port, runtime.as_ref(), &uid, bytes));
    }
    let listening = async {
        while let Some(Ok(message)) = stream.next().await {
            if message.is_close() {
                return;
            }
            if let Some((channel, bytes)) = form.read(&message)
                && channel % 2 == 0
                && !bytes.is_empty()
                && let Some(upstream) = upstreams.get(usize::from(channel / 2))
            {
                // A pod that has closed its side does not mind.
                let _ = upstream.send(bytes).await;
            }
        }
    };
    tokio::select! {
        _ = futures::future::join_all(tunnels) => {}
        () = listening => {}
    }
    if let Ok(socket) = voice.sink.into_inner().reunite(stream) {
        leave_socket(socket).await;
    }
}

/// One connection.
async fn tunnel<R: Runtime>(
    voice: &Voice,
    data: u8,
    port: u16,
    runtime: &R,
    uid: &str,
    from_client: mpsc::Receiver<Bytes>,
) {
    let error = data + 1;
    for channel in [data, error] {
        if voice.send(channel, &port.to_le_bytes()).await.is_none() {
            return;
        }
    }
    match runtime.connect(uid, port).await {
        Ok(connection) => {
            let (from_pod, to_pod) = tokio::io::split(connection);
            // The client has no way to end its side alone: it is the pod's end that counts.
            tokio::select! {
                () = voice.pass(data, from_pod) => {}
                () = async {
                    send_to_pod(from_client, to_pod).await;
                    std::future::pending::<()>().await;
                } => {}
            }
        }
        Err(why) => {
            let message = format!("error forwarding port {port} to pod {uid}: {why}");
            let _ = voice.send(error, message.as_bytes()).await;
        }
    }
}

struct Voice {
    sink: Mutex<SplitSink<Socket, Message>>,
    form: Form,
}

impl Voice {
    async fn pass(&self, channel: u8, mut from_pod: ReadHalf<Box<dyn Connection>>) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = from_pod.read(&mut chunk).await {
            if self.send(channel, &chunk[..length]).await.is_none() {
                return;
            }
        }
    }

    async fn send(&self, channel: u8, bytes: &[u8]) -> Option<()> {
        let message = self.form.write(channel, bytes);
        self.sink.lock().await.send(message).await.ok()
    }
}

impl Form {
    fn write(self, channel: u8, bytes: &[u8]) -> Message {
        match self {
            Self::Binary => {
                let mut message = BytesMut::with_capacity(bytes.len() + 1);
                message.put_u8(channel);
                message.put_slice(bytes);
                Message::Binary(message.freeze())
            }
            Self::Base64 => {
                let channel = char::from(b'0'.saturating_add(channel));
                Message::text(format!("{channel}{}", STANDARD.encode(bytes)))
            }
        }
    }

    /// The channel of a message, and what it says.
    fn read(self, message: &Message) -> Option<(u8, Bytes)> {
        let bytes = match message {
            Message::Binary(bytes) => bytes.clone(),
            Message::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            _ => return None,
        };
        let channel = *bytes.first()?;
        match self {
            Self::Binary => Some((channel, bytes.slice(1..))),
            Self::Base64 => {
                let decoded = STANDARD.decode(bytes.slice(1..)).ok()?;
                Some((channel.checked_sub(b'0')?, decoded.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_in_order_and_none_is_refused() {
        assert_eq!(ports("port=8080%2C9090&port=80"), Ok(vec![8080, 9090, 80]));
        for wrong in ["", "port=", "port=0", "port=x", "port=70000"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_are_read_as_they_are_written() {
        for form in [Form::Binary, Form::Base64] {
            let message = form.write(4, b"\0\xff bytes");
            assert_eq!(
                form.read(&message),
                Some((4, Bytes::from_static(b"\0\xff bytes")))
            );
        }
        assert_eq!(Form::Base64.write(1, b"ok"), Message::text("1b2s="));
    }
}
