//! Response bodies: whole, in pieces that are shared with the store, or endless (a watch, a log).

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};

/// A stream of chunks; an error ends the connection.
pub(crate) type ChunkStream = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>;

/// Why a streamed body broke off.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BodyError(pub(crate) String);

/// What the server answers with.
pub struct Body(Kind);

enum Kind {
    Pieces(VecDeque<Bytes>),
    Stream(ChunkStream),
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::pieces([bytes.into()])
    }

    pub(crate) fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self(Kind::Pieces(
            pieces
                .into_iter()
                .filter(|piece| !piece.is_empty())
                .collect(),
        ))
    }

    pub(crate) fn stream(
        chunks: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
    ) -> Self {
        Self(Kind::Stream(Box::pin(chunks)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Kind::Pieces(pieces) => {
                Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
            }
            Kind::Stream(chunks) => {
                let chunk = ready!(chunks.as_mut().poll_next(cx));
                Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Pieces(pieces) if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}
