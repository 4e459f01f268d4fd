//! Response bodies: whole, in pieces that are shared with the store, or endless (a watch, a log).

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use http_body::{Frame, SizeHint};

use super::metrics::{Counted, Lasting};
use super::overload::Place;

/// A stream of chunks; an error ends the connection.
pub(crate) type ChunkStream = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>;

/// Why a streamed body broke off.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BodyError(pub(crate) String);

/// Pieces are sent together up to this many bytes: each frame costs a write of its own.
const FRAME: usize = 64 * 1024;

/// What the server answers with.
pub struct Body {
    kind: Kind,
    /// Counted for as long as it is there.
    lasting: Option<Lasting>,
    /// Held for as long as it is there.
    _place: Option<Place>,
}

enum Kind {
    /// Sent as it is.
    Whole(Bytes),
    Pieces(VecDeque<Bytes>),
    Stream(ChunkStream),
}

impl From<Kind> for Body {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            lasting: None,
            _place: None,
        }
    }
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Kind::Whole(bytes.into()).into()
    }

    pub(crate) fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let pieces = pieces.into_iter();
        let pieces = pieces.filter(|piece| !piece.is_empty()).collect();
        Kind::Pieces(pieces).into()
    }

    pub(crate) fn stream(
        chunks: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
    ) -> Self {
        Kind::Stream(Box::pin(chunks)).into()
    }

    /// Holds a place among the lasting requests of its user.
    pub(super) fn holding(self, place: Option<Place>) -> Self {
        Self {
            _place: place,
            ..self
        }
    }

    /// Counts an endless body for as long as it is there.
    pub(super) fn count(&mut self, request: &Counted) {
        if matches!(self.kind, Kind::Stream(_)) {
            self.lasting = Some(request.lasts());
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.kind {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Pieces(pieces) => {
                Poll::Ready(next_frame(pieces).map(|frame| Ok(Frame::data(frame))))
            }
            Kind::Stream(chunks) => {
                let chunk = ready!(chunks.as_mut().poll_next(cx));
                Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Pieces(pieces) => pieces.is_empty(),
            Kind::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

/// Takes as many pieces off the front as fit a frame, one at least. They are joined only now, so
/// that a long list takes no more memory than what it is made of.
fn next_frame(pieces: &mut VecDeque<Bytes>) -> Option<Bytes> {
    let first = pieces.pop_front()?;
    let fits =
        |length: usize, next: Option<&Bytes>| next.is_some_and(|next| length + next.len() <= FRAME);
    if !fits(first.len(), pieces.front()) {
        return Some(first);
    }
    let mut frame = BytesMut::with_capacity(FRAME);
    frame.extend_from_slice(&first);
    while fits(frame.len(), pieces.front())
        && let Some(piece) = pieces.pop_front()
    {
        frame.extend_from_slice(&piece);
    }
    Some(frame.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[tokio::test]
    async fn small_pieces_are_sent_together_and_nothing_is_lost() {
        let large = Bytes::from(vec![b'x'; FRAME + 1]);
        let small = (0..50_000).map(|number: usize| Bytes::from(number.to_string()));
        let pieces: Vec<Bytes> = small.chain([large]).collect();
        let (expected, length) = (
            pieces.concat(),
            pieces.iter().map(Bytes::len).sum::<usize>(),
        );
        let mut body = Body::pieces(pieces);
        let (mut sent, mut frames) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            sent.extend_from_slice(&frame.unwrap().into_data().unwrap());
            frames += 1;
        }
        assert_eq!(sent, expected);
        assert!(frames <= length / FRAME + 2, "{frames} frames");
    }
}
