//! A connection whose client must go on reading, and may stop sending.
//!
//! A client that stops reading fills the buffers between it and the server; from then on it is only
//! waited for so long. Nobody else waits for it at all: a watch holds no events of its own, only the
//! place up to which it has sent.

//!
//! A client that closes its half after a request is still answered; hyper would take it for gone.
//! So the end of what it sends is not told while a request is being answered. A watch that has
//! begun counts as answered: it ends when its client goes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How many requests of a connection are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<AtomicUsize>);

/// Counts one request for as long as it lives.
pub(super) struct Counted(UnderWay);

impl UnderWay {
    pub(super) fn count(&self) -> Counted {
        self.0.fetch_add(1, Ordering::AcqRel);
        Counted(self.clone())
    }

    fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A stream that fails when nothing could be written for too long.
#[derive(Debug)]
pub(super) struct Stalling<S> {
    stream: S,
    limit: Duration,
    /// When a write that waits has waited too long.
    overdue: Option<Pin<Box<Sleep>>>,
    under_way: UnderWay,
    /// The client sends no more; when that is told at the latest.
    ended: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    pub(super) fn new(stream: S, limit: Duration, under_way: UnderWay) -> Self {
        Self {
            stream,
            limit,
            overdue: None,
            under_way,
            ended: None,
        }
    }

    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.overdue = None;
            return written;
        }
        let limit = self.limit;
        let overdue = self.overdue.get_or_insert_with(|| Box::pin(sleep(limit)));
        match overdue.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.is_none() {
            let before = to.filled().len();
            let room = to.remaining() > 0;
            match ready!(Pin::new(&mut self.stream).poll_read(cx, to)) {
                Ok(()) => {}
                // TLS calls it an error when a client that closes does not say so first.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            if to.filled().len() > before || !room {
                return Poll::Ready(Ok(()));
            }
            let limit = self.limit;
            self.ended = Some(Box::pin(sleep(limit)));
        }
        let answering = self.under_way.any();
        match &mut self.ended {
            Some(limit) if answering => limit.as_mut().poll(cx).map(Ok),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test(start_paused = true)]
    async fn who_stops_reading_is_cut_off_and_who_reads_slowly_is_not() {
        let limit = Duration::from_secs(30);
        let (mut client, server) = tokio::io::duplex(16);
        let mut server = Stalling::new(server, limit, UnderWay::default());
        let reading = async {
            let mut byte = [0; 16];
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                client.read_exact(&mut byte).await.unwrap();
            }
            client
        };
        let (written, _client) = tokio::join!(server.write_all(&[7; 160]), reading);
        written.unwrap();
        let started = tokio::time::Instant::now();
        let error = server.write_all(&[7; 160]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), limit);
    }
}
