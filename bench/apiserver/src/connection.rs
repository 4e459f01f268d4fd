//! One kept-alive HTTP/1.1 connection over TLS, with as little work as a client can do: the load
//! generator shares the cores with what it measures.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How much is read at a time.
const READ: usize = 64 * 1024;

/// A connection, and what was read from it and not used yet.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    /// What of the buffer is used.
    at: usize,
}

/// An answer's status and how long its body was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) code: u16,
    pub(crate) bytes: usize,
}

/// How a body ends.
enum Framing {
    Length(usize),
    Chunked,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr, tls: &Arc<ClientConfig>) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(address.ip().into());
        let stream = TlsConnector::from(tls.clone())
            .connect(name, stream)
            .await?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(READ),
            at: 0,
        })
    }

    /// Sends a request and reads the answer to its end; the body goes to `body`.
    pub(crate) async fn send(
        &mut self,
        request: &[u8],
        mut body: impl FnMut(&[u8]),
    ) -> io::Result<Answered> {
        let (code, framing) = self.start(request).await?;
        let mut bytes = 0;
        match framing {
            Framing::Length(length) => {
                bytes += length;
                self.take(length, &mut body).await?;
            }
            Framing::Chunked => loop {
                let length = self.chunk_length().await?;
                bytes += length;
                self.take(length, &mut body).await?;
                self.take(2, &mut |_| ()).await?;
                if length == 0 {
                    break;
                }
            },
        }
        Ok(Answered { code, bytes })
    }

    /// Sends a request and reads the head of its answer.
    async fn start(&mut self, request: &[u8]) -> io::Result<(u16, Framing)> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        let length = self.until(b"\r\n\r\n").await?;
        let head = &self.buffer[self.at..self.at + length];
        let read = read_head(head).ok_or_else(|| {
            let head = String::from_utf8_lossy(head).into_owned();
            io::Error::new(io::ErrorKind::InvalidData, format!("not an answer: {head}"))
        });
        self.at += length;
        read
    }

    /// Sends a request whose answer does not end.
    pub(crate) async fn follow(&mut self, request: &[u8]) -> io::Result<u16> {
        Ok(self.start(request).await?.0)
    }

    /// More of an answer that does not end.
    pub(crate) async fn more(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        if self.at == self.buffer.len() {
            self.fill().await?;
        }
        into.extend_from_slice(&self.buffer[self.at..]);
        self.at = self.buffer.len();
        Ok(())
    }

    /// How many bytes there are up to the end of `mark`.
    async fn until(&mut self, mark: &[u8]) -> io::Result<usize> {
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.at..];
            let from = searched.min(rest.len());
            let found = rest[from..]
                .windows(mark.len())
                .position(|window| window == mark);
            if let Some(found) = found {
                return Ok(from + found + mark.len());
            }
            searched = rest.len().saturating_sub(mark.len());
            self.fill().await?;
        }
    }

    async fn chunk_length(&mut self) -> io::Result<usize> {
        let length = self.until(b"\r\n").await?;
        let line = &self.buffer[self.at..self.at + length - 2];
        let digits = std::str::from_utf8(line).unwrap_or_default();
        let digits = digits.split(';').next().unwrap_or_default();
        let read = usize::from_str_radix(digits.trim(), 16)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
        self.at += length;
        read
    }

    /// Hands over the next `length` bytes.
    async fn take(&mut self, mut length: usize, to: &mut impl FnMut(&[u8])) -> io::Result<()> {
        while length > 0 {
            if self.at == self.buffer.len() {
                self.fill().await?;
            }
            let end = self.buffer.len().min(self.at + length);
            to(&self.buffer[self.at..end]);
            length -= end - self.at;
            self.at = end;
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<()> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        }
        self.buffer.reserve(READ / 4);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

fn read_head(head: &[u8]) -> Option<(u16, Framing)> {
    let code = std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()?;
    let mut framing = Framing::Length(0);
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let value = line[colon + 1..].trim_ascii();
        if line[..colon].eq_ignore_ascii_case(b"content-length") {
            framing = Framing::Length(std::str::from_utf8(value).ok()?.parse().ok()?);
        } else if line[..colon].eq_ignore_ascii_case(b"transfer-encoding") {
            framing = Framing::Chunked;
        }
    }
    Some((code, framing))
}
