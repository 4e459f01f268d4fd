//! The name server's port for connections.
//!
//! Every pod reaches it, and each connection is a file of the process that the API server is in. So
//! there are few, of one address and of all, and for one more an old one is closed.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::StreamExt as _;
use hickory_server::net::runtime::TokioTime;
use hickory_server::net::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_server::net::tcp::TcpStream;
use hickory_server::net::xfer::Protocol;
use hickory_server::proto::op::MessageType;
use hickory_server::server::{Request, RequestHandler as _, ResponseHandle, TimeoutStream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use windlass_apimachinery::connections::{Connections, Place};

use super::Names;

/// How many answers may wait to be read.
const WAITING: usize = 32;
/// How long the server rests when it cannot accept.
const REST: Duration = Duration::from_millis(100);

/// What connections may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How long one may be silent.
    pub(super) idle: Duration,
    /// How many there may be.
    pub(super) all: usize,
    /// How many of one address.
    pub(super) of_one: usize,
}

/// Answers until the future is dropped.
pub(super) async fn serve(listener: TcpListener, names: Names, limits: Limits) {
    let (all, of_one) = (
        Connections::new(limits.all),
        Connections::new(limits.of_one),
    );
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let places = (all.add(()), of_one.add(peer.ip()));
                    let names = names.clone();
                    connections.spawn(async move {
                        tokio::select! {
                            biased;
                            () = places.0.closed() => {}
                            () = places.1.closed() => {}
                            () = converse(stream, peer, names, &places, limits.idle) => {}
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the name server cannot accept a connection");
                    // Out of file descriptors, most likely.
                    all.close_oldest();
                    tokio::time::sleep(REST).await;
                }
            },
        }
    }
}

/// Answers the questions of one connection, one after the other.
async fn converse(
    stream: tokio::net::TcpStream,
    peer: SocketAddr,
    names: Names,
    (among_all, of_one): &(Place<()>, Place<IpAddr>),
    idle: Duration,
) {
    let stream = AsyncIoTokioAsStd(stream);
    let (messages, answers) = TcpStream::from_stream_with_buffer_size(stream, peer, WAITING);
    let mut messages = TimeoutStream::new(messages, idle);
    while let Some(Ok(message)) = messages.next().await {
        among_all.is_used();
        of_one.is_used();
        let (bytes, _) = message.into_parts();
        let Ok(request) = Request::from_bytes(bytes, peer, Protocol::Tcp) else {
            return;
        };
        if request.metadata.message_type == MessageType::Response {
            return;
        }
        let handle = ResponseHandle::new(peer, answers.clone(), Protocol::Tcp);
        names.handle_request::<_, TokioTime>(&request, handle).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::*;
    use crate::network::Picture;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// A question for the address of a name, as it is on a connection.
    fn question() -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in ["nowhere", "cluster", "local", ""] {
            message.push(u8::try_from(label.len()).expect("a short label"));
            message.extend(label.bytes());
        }
        message.extend([0, 1, 0, 1]);
        let length = u16::try_from(message.len()).expect("a short message");
        [&length.to_be_bytes()[..], &message].concat()
    }

    /// Asks, and gives the code of the answer; none when the connection is closed.
    async fn ask(stream: &mut tokio::net::TcpStream) -> Option<u8> {
        let answer = async {
            stream.write_all(&question()).await.ok()?;
            let length = stream.read_u16().await.ok()?;
            let mut message = vec![0; length.into()];
            stream.read_exact(&mut message).await.ok()?;
            assert_eq!(message[..2], [0x12, 0x34]);
            Some(message[3] & 0xf)
        };
        timeout(PATIENCE, answer).await.expect("in time")
    }

    #[tokio::test]
    async fn connections_of_one_address_are_few_and_the_newest_are_answered() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (_sender, pictures) = watch::channel(Picture::default());
        // Nothing but the number closes them.
        let limits = Limits {
            idle: Duration::from_hours(1),
            all: 100,
            of_one: 4,
        };
        let serving = tokio::spawn(serve(listener, Names { pictures }, limits));
        let no_such_name = Some(3);
        let mut held = Vec::new();
        for _ in 0..6 {
            let stream = tokio::net::TcpStream::connect(address).await;
            let mut stream = stream.expect("a connection");
            assert_eq!(ask(&mut stream).await, no_such_name);
            held.push(stream);
        }
        for (number, stream) in held.iter_mut().enumerate() {
            let expected = if number < 2 { None } else { no_such_name };
            assert_eq!(ask(stream).await, expected, "connection {number}");
        }
        serving.abort();
    }
}
