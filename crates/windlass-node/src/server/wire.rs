//! Bytes of SPDY to and from a client: on the connection itself, or in messages of a WebSocket.

use bytes::{Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use super::farewell::{leave, leave_socket};
use super::upgrade::{Conversation, Io, Socket};

/// How many frames may wait for the client.
const UNSENT: usize = 64;
/// How much is read at once.
const CHUNK: usize = 32 * 1024;

/// Where bytes come from.
pub(super) enum Reader {
    Socket(SplitStream<Socket>),
    Plain(ReadHalf<Io>),
}

/// Writes what is sent to it, until nothing more can be.
pub(super) struct Writer(JoinHandle<WriteEnd>);

enum WriteEnd {
    Socket(SplitSink<Socket, Message>),
    Plain(WriteHalf<Io>),
}

/// Opens both directions; what is sent to the channel goes to the client.
pub(super) fn open(conversation: Conversation) -> (Reader, mpsc::Sender<Bytes>, Writer) {
    let (reader, mut end) = match conversation {
        Conversation::Socket(socket, _) => {
            let (sink, stream) = (*socket).split();
            (Reader::Socket(stream), WriteEnd::Socket(sink))
        }
        Conversation::Spdy(io) => {
            let (read, write) = tokio::io::split(io);
            (Reader::Plain(read), WriteEnd::Plain(write))
        }
    };
    let (outgoing, mut frames) = mpsc::channel::<Bytes>(UNSENT);
    let writing = tokio::spawn(async move {
        while let Some(frame) = frames.recv().await {
            if end.write(frame).await.is_none() {
                break;
            }
        }
        end
    });
    (reader, outgoing, Writer(writing))
}

impl WriteEnd {
    async fn write(&mut self, frame: Bytes) -> Option<()> {
        match self {
            Self::Socket(sink) => sink.send(Message::Binary(frame)).await.ok(),
            Self::Plain(io) => {
                io.write_all(&frame).await.ok()?;
                io.flush().await.ok()
            }
        }
    }
}

impl Reader {
    /// The next bytes; none when the client has gone.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Socket(stream) => loop {
                match stream.next().await {
                    Some(Ok(Message::Binary(bytes))) => return Some(bytes),
                    Some(Ok(message)) if !message.is_close() => {}
                    _ => return None,
                }
            },
            Self::Plain(io) => {
                let mut chunk = BytesMut::with_capacity(CHUNK);
                match io.read_buf(&mut chunk).await {
                    Ok(1..) => Some(chunk.freeze()),
                    _ => None,
                }
            }
        }
    }
}

/// Ends a conversation once everything that was sent has been written. All senders must be gone.
pub(super) async fn close(reader: Reader, writer: Writer) {
    match (reader, writer.0.await) {
        (Reader::Socket(stream), Ok(WriteEnd::Socket(sink))) => {
            if let Ok(socket) = sink.reunite(stream) {
                leave_socket(socket).await;
            }
        }
        (Reader::Plain(read), Ok(WriteEnd::Plain(write))) => leave(read.unsplit(write)).await,
        _ => {}
    }
}
