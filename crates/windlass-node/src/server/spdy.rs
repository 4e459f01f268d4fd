//! SPDY/3.1, as much of it as port-forwarding uses: streams with headers, data, and their ends.
//!
//! Control frames have a first bit of 1, a version and a type; data frames the number of their
//! stream. Headers of one direction are one compressed stream with a dictionary known to both
//! ends. Nobody waits for a window here: the libraries that speak it to Kubernetes do not, either.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::dictionary::dictionary;

const VERSION: u16 = 3;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const FIN: u8 = 1;
/// The length of what comes before each frame's content.
const HEAD: usize = 8;
/// Headers are a few words; a frame of them is not larger.
const MOST_HEADERS: usize = 64 * 1024;

/// Headers by their lower-case names.
pub(super) type Headers = BTreeMap<String, String>;

/// What the other end says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// It opens a stream; `last` when it will send nothing on it.
    Open {
        stream: u32,
        headers: Headers,
        last: bool,
    },
    /// It sends something; `last` when nothing follows.
    Data {
        stream: u32,
        bytes: Bytes,
        last: bool,
    },
    /// It gives up a stream.
    Reset { stream: u32 },
    /// It asks whether we are there.
    Ping { id: u32 },
    /// It will open no more streams.
    GoAway,
    /// Something that does not matter here.
    Other,
}

/// What is wrong with what the other end says.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum SpdyError {
    #[error("a frame of SPDY version {0}")]
    Version(u16),
    #[error("a frame that is too short")]
    Short,
    #[error("headers that cannot be read")]
    Headers,
}

/// Reads frames from bytes as they come.
pub(super) struct Decoder {
    buffer: BytesMut,
    inflate: Decompress,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            buffer: BytesMut::new(),
            inflate: Decompress::new(true),
        }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame, if it is there as a whole.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, SpdyError> {
        let Some(head) = self.buffer.get(..HEAD) else {
            return Ok(None);
        };
        let length = usize::from(head[5]) << 16 | usize::from(head[6]) << 8 | usize::from(head[7]);
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        let mut head = self.buffer.split_to(HEAD);
        let mut content = self.buffer.split_to(length).freeze();
        let (first, flags) = (head.get_u32(), head.get_u8());
        let last = flags & FIN != 0;
        if first >> 31 == 0 {
            return Ok(Some(Frame::Data {
                stream: first,
                bytes: content,
                last,
            }));
        }
        let version = u16::try_from(first >> 16 & 0x7fff).unwrap_or_default();
        if version != VERSION {
            return Err(SpdyError::Version(version));
        }
        let number = |content: &mut Bytes| content.try_get_u32().map_err(|_| SpdyError::Short);
        let kind = u16::try_from(first & 0xffff).unwrap_or_default();
        Ok(Some(match kind {
            SYN_STREAM => {
                let stream = number(&mut content)? & 0x7fff_ffff;
                // The stream it belongs to, its priority and a slot.
                content
                    .try_get_u32()
                    .and_then(|_| content.try_get_u16())
                    .map_err(|_| SpdyError::Short)?;
                Frame::Open {
                    stream,
                    headers: self.headers(&content)?,
                    last,
                }
            }
            RST_STREAM => Frame::Reset {
                stream: number(&mut content)? & 0x7fff_ffff,
            },
            PING => Frame::Ping {
                id: number(&mut content)?,
            },
            GO_AWAY => Frame::GoAway,
            _ => Frame::Other,
        }))
    }

    fn headers(&mut self, compressed: &[u8]) -> Result<Headers, SpdyError> {
        let plain = self.inflate(compressed)?;
        let mut plain = Bytes::from(plain);
        let count = plain.try_get_u32().map_err(|_| SpdyError::Headers)?;
        let mut headers = Headers::new();
        for _ in 0..count {
            let name = word(&mut plain)?;
            headers.insert(name.to_ascii_lowercase(), word(&mut plain)?);
        }
        Ok(headers)
    }

    fn inflate(&mut self, mut compressed: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let mut plain = Vec::with_capacity(4096);
        while !compressed.is_empty() && plain.len() < MOST_HEADERS {
            plain.reserve(4096);
            let before = self.inflate.total_in();
            let done = self
                .inflate
                .decompress_vec(compressed, &mut plain, FlushDecompress::Sync);
            let used = usize::try_from(self.inflate.total_in() - before);
            compressed = &compressed[used.unwrap_or_default()..];
            match done {
                Ok(Status::Ok | Status::BufError) if used == Ok(0) => break,
                Ok(Status::Ok | Status::BufError) => {}
                Ok(Status::StreamEnd) => break,
                Err(error) if error.needs_dictionary().is_some() => {
                    self.inflate
                        .set_dictionary(&dictionary())
                        .map_err(|_| SpdyError::Headers)?;
                }
                Err(_) => return Err(SpdyError::Headers),
            }
        }
        Ok(plain)
    }
}

fn word(plain: &mut Bytes) -> Result<String, SpdyError> {
    let length = plain.try_get_u32().map_err(|_| SpdyError::Headers)?;
    let length = usize::try_from(length).map_err(|_| SpdyError::Headers)?;
    if plain.len() < length {
        return Err(SpdyError::Headers);
    }
    Ok(String::from_utf8_lossy(&plain.split_to(length)).into_owned())
}

/// Writes frames.
pub(super) struct Encoder {
    deflate: Compress,
}

impl Encoder {
    pub(super) fn new() -> Self {
        let mut deflate = Compress::new(Compression::fast(), true);
        // It is ours to choose, and a reader told of another one would say so.
        if let Err(error) = deflate.set_dictionary(&dictionary()) {
            tracing::error!(%error, "headers will not be understood");
        }
        Self { deflate }
    }

    /// A stream is accepted.
    pub(super) fn reply(&mut self, stream: u32) -> Bytes {
        let mut compressed = Vec::with_capacity(64);
        let none = 0_u32.to_be_bytes();
        if let Err(error) = self
            .deflate
            .compress_vec(&none, &mut compressed, FlushCompress::Sync)
        {
            tracing::error!(%error, "headers cannot be written");
        }
        let mut content = BytesMut::new();
        content.put_u32(stream);
        content.put_slice(&compressed);
        control(SYN_REPLY, 0, &content)
    }

    /// Something for a stream; `last` when nothing follows.
    pub(super) fn data(stream: u32, bytes: &[u8], last: bool) -> Bytes {
        let mut frame = BytesMut::with_capacity(HEAD + bytes.len());
        frame.put_u32(stream);
        frame.put_u32(head(if last { FIN } else { 0 }, bytes.len()));
        frame.put_slice(bytes);
        frame.freeze()
    }

    pub(super) fn ping(id: u32) -> Bytes {
        control(PING, 0, &id.to_be_bytes())
    }
}

fn control(kind: u16, flags: u8, content: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEAD + content.len());
    frame.put_u16(0x8000 | VERSION);
    frame.put_u16(kind);
    frame.put_u32(head(flags, content.len()));
    frame.put_slice(content);
    frame.freeze()
}

/// Flags and length; frames made here are never longer than it can say.
fn head(flags: u8, length: usize) -> u32 {
    u32::from(flags) << 24 | u32::try_from(length).unwrap_or_default() & 0x00ff_ffff
}

#[cfg(test)]
mod tests;
