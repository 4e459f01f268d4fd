//! Bytes between a client and a node, until one of them goes.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How much is read at once.
const CHUNK: usize = 32 * 1024;
/// How long a client that has been told everything may take to read it and go.
const FAREWELL: Duration = Duration::from_mins(1);

/// Passes everything on both ways. Whatever the node has said reaches the client, however the node
/// ends and however slowly the client reads.
pub(super) async fn relay<C, N>(client: C, node: N)
where
    C: AsyncRead + AsyncWrite,
    N: AsyncRead + AsyncWrite,
{
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_node, mut to_node) = tokio::io::split(node);
    let upwards = pass(&mut from_client, &mut to_node);
    let mut downwards = std::pin::pin!(pass(&mut from_node, &mut to_client));
    tokio::select! {
        () = &mut downwards => {}
        // The node hears that the client has said all; it may have more to say.
        () = upwards => return downwards.await,
    }
    // A connection that is closed while something of the client's is unread would be reset, and
    // what is still on its way to the client be lost.
    let mut unheard = tokio::io::sink();
    let rest = tokio::io::copy(&mut from_client, &mut unheard);
    let _ = tokio::time::timeout(FAREWELL, rest).await;
}

/// Passes everything on one way, and then that it is over. A side that breaks off is over, too:
/// what it has said before is passed on all the same.
async fn pass(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let written = async {
            to.write_all(&chunk[..length]).await?;
            to.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "a connection to a pod ended");
            return;
        }
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::ReadBuf;

    use super::*;

    /// A node that says something and breaks off, as TLS without a goodbye does.
    struct BreaksOff(io::Cursor<Vec<u8>>);

    impl AsyncRead for BreaksOff {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let before = buffer.filled().len();
            let read = Pin::new(&mut self.0).poll_read(context, buffer);
            if buffer.filled().len() == before {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            read
        }
    }

    impl AsyncWrite for BreaksOff {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_slow_client_hears_all_that_was_said_before_a_node_broke_off() {
        let said: Vec<u8> = (0..=u8::MAX).cycle().take(100_000).collect();
        let (mut client, here) = tokio::io::duplex(16);
        let node = BreaksOff(io::Cursor::new(said.clone()));
        let relayed = tokio::spawn(relay(here, node));
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.expect("what was said");
        assert!(heard == said, "{} of {} bytes", heard.len(), said.len());
        drop(client);
        relayed.await.expect("an end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_go_is_not_waited_for_without_end() {
        let (client, here) = tokio::io::duplex(16);
        let node = BreaksOff(io::Cursor::new(b"bye".to_vec()));
        let begin = tokio::time::Instant::now();
        relay(here, node).await;
        assert_eq!(begin.elapsed(), FAREWELL);
        drop(client);
    }
}
