//! A session by WebSocket: each message begins with the number of a channel.
//!
//! From version 5 on a message of 255 and a channel's number ends that channel, which is how a
//! client says that its input is over.

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::Message;

use super::{Ear, Said, Voice, channel};
use crate::server::farewell::leave_socket;
use crate::server::upgrade::Socket;

const CLOSE: u8 = 255;

/// What is said to the client.
pub(super) struct SocketVoice(Mutex<SplitSink<Socket, Message>>);

/// What the client says.
pub(super) struct SocketEar(SplitStream<Socket>);

pub(super) fn split(socket: Socket) -> (SocketVoice, SocketEar) {
    let (sink, stream) = socket.split();
    (SocketVoice(Mutex::new(sink)), SocketEar(stream))
}

/// Ends the conversation.
pub(super) async fn close(voice: SocketVoice, ear: SocketEar) {
    if let Ok(socket) = voice.0.into_inner().reunite(ear.0) {
        leave_socket(socket).await;
    }
}

impl Voice for SocketVoice {
    async fn send(&self, channel: u8, bytes: &[u8]) -> Option<()> {
        let mut message = BytesMut::with_capacity(bytes.len() + 1);
        message.put_u8(channel);
        message.put_slice(bytes);
        let mut sink = self.0.lock().await;
        let sent = sink.send(Message::Binary(message.freeze())).await;
        sent.map_err(|error| tracing::debug!(%error, "a client is gone"))
            .ok()
    }
}

impl Ear for SocketEar {
    async fn next(&mut self) -> Option<Said> {
        loop {
            let bytes = match self.0.next().await?.ok()? {
                Message::Binary(bytes) => bytes,
                Message::Text(text) => Bytes::from(text),
                Message::Close(_) => return Some(Said::Goodbye),
                _ => continue,
            };
            match bytes.split_first() {
                Some((&channel::STDIN, rest)) if !rest.is_empty() => {
                    return Some(Said::Input(bytes.slice(1..)));
                }
                Some((&CLOSE, [channel::STDIN])) => return Some(Said::InputOver),
                Some((&channel::RESIZE, size)) => {
                    if let Some(said) = resize(size) {
                        return Some(said);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The size of a terminal, as clients write it.
#[derive(Deserialize)]
struct Size {
    #[serde(rename = "Width")]
    width: u16,
    #[serde(rename = "Height")]
    height: u16,
}

/// A new size of the terminal, if it can be read.
pub(super) fn resize(json: &[u8]) -> Option<Said> {
    let size: Size = serde_json::from_slice(json).ok()?;
    Some(Said::Resize(size.width, size.height))
}
