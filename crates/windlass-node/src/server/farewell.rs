//! Ends of conversations: the client hears all that was said, and a Close is answered by one.
//!
//! A connection that is dropped while something of the client's is unread is reset, and what is on
//! its way is lost. So the client is left the time to go first.

use std::time::Duration;

use futures::{SinkExt, TryStreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// How long a client that has been told everything may take to read it and go.
const FAREWELL: Duration = Duration::from_mins(1);

/// Closes a WebSocket, or answers the client's own Close.
pub(super) async fn leave_socket<S>(mut socket: WebSocketStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Without a code clients take it for an accident.
    let normal = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    let parting = async {
        if socket.close(Some(normal)).await.is_err() {
            // The client has closed first; this sends the answer.
            SinkExt::close(&mut socket).await?;
        }
        while let Ok(Some(_)) = socket.try_next().await {}
        socket.get_mut().flush().await?;
        Ok::<_, tungstenite::Error>(())
    };
    match tokio::time::timeout(FAREWELL, parting).await {
        Ok(Ok(())) => leave(socket.get_mut()).await,
        Ok(Err(error)) => tracing::debug!(%error, "a client is gone"),
        Err(_) => {}
    }
}

/// Ends a connection.
pub(super) async fn leave<S>(mut connection: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let parting = async {
        connection.shutdown().await?;
        let mut chunk = vec![0; 4096];
        while connection.read(&mut chunk).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    if let Ok(Err(error)) = tokio::time::timeout(FAREWELL, parting).await {
        tracing::debug!(%error, "a client is gone");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::StreamExt;
    use tokio::net::{TcpListener, TcpSocket};
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// A client and a server that speak over a connection on which little is under way at a time.
    async fn pair() -> (
        WebSocketStream<tokio::net::TcpStream>,
        WebSocketStream<tokio::net::TcpStream>,
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let client = TcpSocket::new_v4().expect("a socket");
        client.set_recv_buffer_size(4096).expect("a small buffer");
        let address = listener.local_addr().expect("an address");
        let (client, server) = futures::join!(client.connect(address), listener.accept());
        let (server, _) = server.expect("a connection");
        let client = client.expect("a connection");
        futures::join!(
            WebSocketStream::from_raw_socket(client, Role::Client, None),
            WebSocketStream::from_raw_socket(server, Role::Server, None),
        )
    }

    #[tokio::test]
    async fn what_a_client_says_last_does_not_cut_off_what_it_is_told() {
        let (mut client, mut server) = pair().await;
        client
            .send(Message::Ping(Bytes::new()))
            .await
            .expect("said");
        let long = Bytes::from(vec![7; 500_000]);
        let told = long.clone();
        let telling = tokio::spawn(async move {
            server.send(Message::Binary(told)).await.expect("told");
            leave_socket(server).await;
        });
        let mut heard = Vec::new();
        while let Some(message) = client.next().await {
            heard.push(message.expect("a message"));
        }
        assert!(heard.contains(&Message::Binary(long)));
        assert!(heard.iter().any(Message::is_close));
        drop(client);
        telling.await.expect("an end");
    }

    #[tokio::test]
    async fn close_of_a_client_is_answered_by_a_close() {
        let (mut client, mut server) = pair().await;
        client.close(None).await.expect("closed");
        assert!(
            server
                .next()
                .await
                .expect("a message")
                .expect("a close")
                .is_close()
        );
        let leaving = tokio::spawn(leave_socket(server));
        let answer = client.next().await.expect("an answer").expect("a close");
        assert!(answer.is_close(), "{answer}");
        drop(client);
        leaving.await.expect("an end");
    }
}
