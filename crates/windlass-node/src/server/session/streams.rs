//! A session by SPDY: a stream for each of the program's ends, each named by its `streamtype`.
//!
//! The client opens all of them before anything is said; the ends of streams are the ends of input
//! and output.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::socket::resize;
use super::{Ear, Said, Voice, channel};
use crate::server::spdy::{Decoder, Encoder, Frame};
use crate::server::wire::Reader;

/// How long a client may take to open its streams, as kubelet gives it.
const OPENING: Duration = Duration::from_secs(30);

/// What is said to the client.
pub(super) struct StreamVoice {
    outgoing: mpsc::Sender<Bytes>,
    streams: BTreeMap<u8, u32>,
}

/// What the client says.
pub(super) struct StreamEar {
    reader: Reader,
    decoder: Decoder,
    encoder: Encoder,
    outgoing: mpsc::Sender<Bytes>,
    /// Which channel each stream is.
    channels: BTreeMap<u32, u8>,
    said: VecDeque<Said>,
    /// What came of a size whose rest is still to come.
    size: Vec<u8>,
}

/// Waits until the client has opened the streams of `channels`; none when it does not.
pub(super) async fn accept(
    reader: Reader,
    outgoing: mpsc::Sender<Bytes>,
    channels: &[u8],
) -> Result<(StreamVoice, StreamEar), Reader> {
    let mut ear = StreamEar {
        reader,
        decoder: Decoder::new(),
        encoder: Encoder::new(),
        outgoing: outgoing.clone(),
        channels: BTreeMap::new(),
        said: VecDeque::new(),
        size: Vec::new(),
    };
    let opened = tokio::time::timeout(OPENING, async {
        while !channels.iter().all(|channel| ear.has(*channel)) {
            ear.read().await?;
        }
        Some(())
    });
    if !matches!(opened.await, Ok(Some(()))) {
        tracing::debug!("a client did not open its streams");
        return Err(ear.reader);
    }
    let streams = ear
        .channels
        .iter()
        .map(|(stream, channel)| (*channel, *stream));
    let voice = StreamVoice {
        streams: streams.collect(),
        outgoing,
    };
    Ok((voice, ear))
}

impl StreamVoice {
    /// Ends every stream, that of the error last: clients read the others first.
    pub(super) async fn end(self) {
        let error = self.streams.get(&channel::ERROR).copied();
        let others = self
            .streams
            .values()
            .copied()
            .filter(|stream| Some(*stream) != error);
        for stream in others.chain(error) {
            let _ = self.outgoing.send(Encoder::data(stream, b"", true)).await;
        }
    }
}

impl Voice for StreamVoice {
    async fn send(&self, channel: u8, bytes: &[u8]) -> Option<()> {
        // Nothing is said where the client has opened no stream.
        let (Some(stream), false) = (self.streams.get(&channel), bytes.is_empty()) else {
            return Some(());
        };
        self.outgoing
            .send(Encoder::data(*stream, bytes, false))
            .await
            .ok()
    }
}

impl StreamEar {
    pub(super) fn into_reader(self) -> Reader {
        self.reader
    }

    fn has(&self, channel: u8) -> bool {
        self.channels.values().any(|known| *known == channel)
    }

    /// Reads until something was said, or a stream opened; none when the client has gone.
    async fn read(&mut self) -> Option<()> {
        let bytes = self.reader.next().await?;
        self.decoder.put(&bytes);
        loop {
            match self.decoder.next() {
                Ok(Some(frame)) => self.hear(frame).await?,
                Ok(None) => return Some(()),
                Err(error) => {
                    tracing::debug!(%error, "a client of a session sends no SPDY");
                    return None;
                }
            }
        }
    }

    async fn hear(&mut self, frame: Frame) -> Option<()> {
        match frame {
            Frame::Open {
                stream, headers, ..
            } => {
                let reply = self.encoder.reply(stream);
                self.outgoing.send(reply).await.ok()?;
                let kind = headers.get("streamtype").map(String::as_str);
                if let Some(channel) = kind.and_then(channel::by_name) {
                    self.channels.insert(stream, channel);
                }
            }
            Frame::Data {
                stream,
                bytes,
                last,
            } => match self.channels.get(&stream) {
                Some(&channel::STDIN) => {
                    if !bytes.is_empty() {
                        self.said.push_back(Said::Input(bytes));
                    }
                    if last {
                        self.said.push_back(Said::InputOver);
                    }
                }
                Some(&channel::RESIZE) => self.hear_size(&bytes),
                _ => {}
            },
            Frame::Reset { stream } => {
                if self.channels.get(&stream) == Some(&channel::STDIN) {
                    self.said.push_back(Said::InputOver);
                }
            }
            Frame::Ping { id } => self.outgoing.send(Encoder::ping(id)).await.ok()?,
            Frame::GoAway => return None,
            Frame::Other => {}
        }
        Some(())
    }

    /// Sizes are JSON, one after the other, each in braces without others in them.
    fn hear_size(&mut self, bytes: &[u8]) {
        const LONGEST: usize = 1024;
        self.size.extend_from_slice(bytes);
        while let Some(end) = self.size.iter().position(|byte| *byte == b'}') {
            let json: Vec<u8> = self.size.drain(..=end).collect();
            self.said.extend(resize(json.trim_ascii()));
        }
        if self.size.len() > LONGEST {
            self.size.clear();
        }
    }
}

impl Ear for StreamEar {
    async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Some(said);
            }
            self.read().await?;
        }
    }
}
