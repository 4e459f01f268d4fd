//! Commands in containers, and containers themselves, by WebSocket.
//!
//! Each message begins with the number of a channel: 0 is what the program reads, 1 and 2 are what
//! it writes, 4 is the size of its terminal, and 3 is how it ended, as a Status in JSON. From
//! version 5 on a message of 255 and a channel's number ends that channel, which is how a client
//! says that its input is over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt, TryStreamExt};
use http::{Request, Response};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};

use super::upgrade::{Socket, upgrade};
use super::{Body, Server, no_such_pod, query};
use crate::runtime::{Execution, Input, Output, Runtime, Session};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// The newest first.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
/// How much is read from a program at once.
const CHUNK: usize = 32 * 1024;
/// How many messages may wait for a program to read them.
const UNREAD: usize = 64;
/// How long what a program left behind may hold its output open, once it has ended, and say nothing.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a client that has been told everything may take to read it and go.
const FAREWELL: Duration = Duration::from_mins(1);

/// Which ends the client wants.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    stdout: bool,
    stderr: bool,
}

type Sender = Mutex<SplitSink<Socket, Message>>;

/// `GET /exec/<namespace>/<pod>/<container>`.
pub(super) async fn exec<R: Runtime>(
    request: Request<Incoming>,
    server: &Arc<Server<R>>,
    namespace: &str,
    pod: &str,
    container: &str,
    query: &str,
) -> Response<Body> {
    let Some(found) = server.directory.find(namespace, pod) else {
        return no_such_pod();
    };
    let execution = Execution {
        command: query::all(query, "command"),
        tty: query::flag(query, "tty"),
        stdin: query::flag(query, "input"),
    };
    let uid = found.metadata.uid.clone().unwrap_or_default();
    let session = server.runtime.exec(&uid, container, execution).await;
    talk(request, session, wanted(query), "executing command in")
}

/// `GET /attach/<namespace>/<pod>/<container>`.
pub(super) async fn attach<R: Runtime>(
    request: Request<Incoming>,
    server: &Arc<Server<R>>,
    namespace: &str,
    pod: &str,
    container: &str,
    query: &str,
) -> Response<Body> {
    let Some(found) = server.directory.find(namespace, pod) else {
        return no_such_pod();
    };
    let uid = found.metadata.uid.clone().unwrap_or_default();
    let stdin = query::flag(query, "input");
    let session = server.runtime.attach(&uid, container, stdin).await;
    talk(request, session, wanted(query), "attaching to")
}

fn wanted(query: &str) -> Wanted {
    Wanted {
        stdout: query::flag(query, "output"),
        stderr: query::flag(query, "error"),
    }
}

/// Goes on by WebSocket, also when there is nothing to talk to: a client is told why on the error
/// channel, or it would try another protocol.
fn talk(
    request: Request<Incoming>,
    session: io::Result<Session>,
    wanted: Wanted,
    doing: &'static str,
) -> Response<Body> {
    upgrade(request, &PROTOCOLS, move |socket, _protocol| async move {
        let (sink, mut incoming) = socket.split();
        let sink: Sender = Mutex::new(sink);
        let status = match session {
            Ok(session) => converse(session, wanted, &sink, &mut incoming, doing).await,
            Err(error) => Some(failure(&format!("unable to upgrade connection: {error}"))),
        };
        if let Some(status) = status {
            let _ = send(&sink, ERROR, status.to_string().as_bytes()).await;
        }
        if let Ok(socket) = sink.into_inner().reunite(incoming) {
            take_leave(socket).await;
        }
    })
}

/// Closes a conversation so that the client hears all of it: a connection that is dropped while
/// something of the client's is unread is reset, and what is on its way is lost.
async fn take_leave<S>(mut socket: WebSocketStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Without a code clients take it for an accident.
    let normal = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    let parting = async {
        socket.close(Some(normal)).await?;
        while socket.try_next().await?.is_some() {}
        socket.get_mut().shutdown().await?;
        Ok::<_, tungstenite::Error>(())
    };
    if let Ok(Err(error)) = tokio::time::timeout(FAREWELL, parting).await {
        tracing::debug!(%error, "a client is gone");
    }
}

/// Carries everything to and fro until the program ends (then how it ended is returned) or the
/// client goes.
async fn converse(
    session: Session,
    wanted: Wanted,
    sink: &Sender,
    incoming: &mut SplitStream<Socket>,
    doing: &str,
) -> Option<Value> {
    let Session {
        stdin,
        stdout,
        stderr,
        resize,
        ended,
    } = session;
    // The client learns that it is connected before the program says anything.
    if wanted.stdout {
        send(sink, STDOUT, b"").await.ok()?;
    } else if wanted.stderr {
        send(sink, STDERR, b"").await.ok()?;
    }
    let (end, over) = watch::channel(false);
    let program = async {
        let ended = async {
            let code = ended.await;
            let _ = end.send(true);
            code
        };
        let (code, (), ()) = futures::join!(
            ended,
            speak(stdout, STDOUT, wanted.stdout, sink, over.clone()),
            speak(stderr, STDERR, wanted.stderr, sink, over.clone()),
        );
        code
    };
    tokio::select! {
        biased;
        code = program => Some(match code {
            Ok(0) => json!({"metadata": {}, "status": "Success"}),
            Ok(code) => non_zero(code),
            Err(error) => failure(&format!("error {doing} container: {error}")),
        }),
        () = listen(incoming, stdin, resize) => None,
    }
}

/// Sends what a program writes, also when nobody wants to hear it: it must not wait. A client may
/// take its time; only what holds the output open after the program's end may not.
async fn speak(
    output: Option<Output>,
    channel: u8,
    wanted: bool,
    sink: &Sender,
    mut over: watch::Receiver<bool>,
) {
    let Some(mut output) = output else {
        return;
    };
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = tokio::select! {
            biased;
            read = output.read(&mut chunk) => read,
            () = silence(&mut over) => return,
        };
        let Ok(length @ 1..) = read else {
            return;
        };
        if wanted && send(sink, channel, &chunk[..length]).await.is_err() {
            return;
        }
    }
}

/// Over when nothing was said for long enough after a program's end.
async fn silence(over: &mut watch::Receiver<bool>) {
    let _ = over.wait_for(|over| *over).await;
    tokio::time::sleep(LAST_WORDS).await;
}

/// Hears the client until it goes.
async fn listen(
    incoming: &mut SplitStream<Socket>,
    stdin: Option<Input>,
    resize: Option<mpsc::UnboundedSender<(u16, u16)>>,
) {
    let (typed, keys) = mpsc::channel(UNREAD);
    let mut typed = stdin.is_some().then_some(typed);
    let typing = tokio::spawn(type_in(keys, stdin));
    while let Some(Ok(message)) = incoming.next().await {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => break,
            _ => continue,
        };
        match bytes.split_first() {
            Some((&STDIN, rest)) if !rest.is_empty() => {
                if let Some(typed) = &typed {
                    // A program that has closed its input does not mind.
                    let _ = typed.send(bytes.slice(1..)).await;
                }
            }
            Some((&CLOSE, [STDIN])) => drop(typed.take()),
            Some((&RESIZE, size)) => {
                if let (Some(resize), Ok(size)) = (&resize, serde_json::from_slice::<Size>(size)) {
                    let _ = resize.send((size.width, size.height));
                }
            }
            _ => {}
        }
    }
    typing.abort();
}

async fn type_in(mut keys: mpsc::Receiver<Bytes>, stdin: Option<Input>) {
    let Some(mut stdin) = stdin else {
        return;
    };
    while let Some(bytes) = keys.recv().await {
        let written = async {
            stdin.write_all(&bytes).await?;
            stdin.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
    let _ = stdin.shutdown().await;
}

/// The size of a terminal, as clients tell it.
#[derive(Deserialize)]
struct Size {
    #[serde(rename = "Width")]
    width: u16,
    #[serde(rename = "Height")]
    height: u16,
}

async fn send(sink: &Sender, channel: u8, bytes: &[u8]) -> Result<(), ()> {
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.put_u8(channel);
    message.put_slice(bytes);
    let mut sink = sink.lock().await;
    sink.send(Message::Binary(message.freeze()))
        .await
        .map_err(|error| tracing::debug!(%error, "a client is gone"))
}

fn non_zero(code: i32) -> Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

fn failure(message: &str) -> Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("Internal error occurred: {message}"),
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    })
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};
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
            take_leave(server).await;
        });
        let mut heard = Vec::new();
        while let Some(message) = client.next().await {
            heard.push(message.expect("a message"));
        }
        assert!(heard.contains(&Message::Binary(long)));
        assert!(heard.iter().any(Message::is_close));
        telling.await.expect("an end");
    }
}
