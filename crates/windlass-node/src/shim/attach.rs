//! Joining a container: its output in frames, its input as it is.
//!
//! A connection whose first line is a [`Wish`] gets frames of one byte for the stream (1 for
//! output, 2 for errors), four for the length, and the piece itself, until the container ends.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::broadcast::error::RecvError;

use super::stream::Streams;
use crate::log::{Heard, Stream};

/// What somebody who comes to attach says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wish {
    pub(crate) container: String,
    /// Whether it wants to write, too.
    pub(crate) stdin: bool,
}

pub(super) async fn serve(
    streams: Streams,
    mut from: BufReader<OwnedReadHalf>,
    mut to: OwnedWriteHalf,
    stdin: bool,
) {
    let mut pieces = streams.voice.subscribe();
    // Only the running container's own copy keeps the channel open.
    let Streams {
        input, once, voice, ..
    } = streams;
    drop(voice);
    let writing = async {
        loop {
            match pieces.recv().await {
                Ok(Heard { stream, bytes }) => {
                    let length = u32::try_from(bytes.len()).unwrap_or_default();
                    let mut frame = vec![number(stream)];
                    frame.extend_from_slice(&length.to_be_bytes());
                    frame.extend_from_slice(&bytes);
                    if to.write_all(&frame).await.is_err() {
                        return;
                    }
                }
                // One who is too slow misses something.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    };
    let reading = async {
        if let Some(input) = input.filter(|_| stdin) {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(length @ 1..) = from.read(&mut buffer).await {
                let mut input = input.lock().await;
                let Some(input) = input.as_mut() else {
                    break;
                };
                if input.write_all(&buffer[..length]).await.is_err() || input.flush().await.is_err()
                {
                    break;
                }
            }
            if once {
                input.lock().await.take();
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = writing => {}
        () = reading => {}
    }
}

fn number(stream: Stream) -> u8 {
    match stream {
        Stream::Stdout => 1,
        Stream::Stderr => 2,
    }
}

/// Reads one frame; none at the end.
pub(crate) async fn read_frame(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
) -> io::Result<Option<(u8, Vec<u8>)>> {
    let stream = match from.read_u8().await {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = usize::try_from(from.read_u32().await?).map_err(io::Error::other)?;
    let mut piece = vec![0; length];
    from.read_exact(&mut piece).await?;
    Ok(Some((stream, piece)))
}
