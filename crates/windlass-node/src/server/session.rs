//! Commands in containers, and containers themselves, by WebSocket or SPDY.
//!
//! Both have channels: 0 is what the program reads, 1 and 2 are what it writes, 4 is the size of
//! its terminal, and 3 is how it ended, as a Status in JSON.

mod socket;
mod streams;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::upgrade::{Conversation, Offers, upgrade};
use super::{Body, Server, no_such_pod, query, wire};
use crate::runtime::{Execution, Input, Output, Runtime, Session};

/// The channels, and what streams of SPDY call them.
mod channel {
    pub(super) const STDIN: u8 = 0;
    pub(super) const STDOUT: u8 = 1;
    pub(super) const STDERR: u8 = 2;
    pub(super) const ERROR: u8 = 3;
    pub(super) const RESIZE: u8 = 4;

    pub(super) fn by_name(name: &str) -> Option<u8> {
        Some(match name {
            "stdin" => STDIN,
            "stdout" => STDOUT,
            "stderr" => STDERR,
            "error" => ERROR,
            "resize" => RESIZE,
            _ => return None,
        })
    }
}

const OFFERS: Offers = Offers {
    socket: &["v5.channel.k8s.io", "v4.channel.k8s.io"],
    spdy: &["v4.channel.k8s.io"],
};
/// How much is read from a program at once.
const CHUNK: usize = 32 * 1024;
/// How many messages may wait for a program to read them.
const UNREAD: usize = 64;
/// How long what a program left behind may hold its output open, once it has ended, and say nothing.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a client that closes waits for the answer while the program reads the rest of its input,
/// and how long the program may go on after that. Some clients know no other way to end an input.
const ANSWER: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_mins(1);

/// What is said to a client.
trait Voice: Sync {
    /// Says something on a channel; none when the client is gone.
    fn send(&self, channel: u8, bytes: &[u8]) -> impl Future<Output = Option<()>> + Send;
}

/// What a client says.
trait Ear: Send {
    /// The next thing; none when the client goes.
    fn next(&mut self) -> impl Future<Output = Option<Said>> + Send;
}

/// Something a client says.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Input(Bytes),
    InputOver,
    /// Columns and rows.
    Resize(u16, u16),
    /// It closes the conversation, which is answered when it is asked for the next thing.
    Goodbye,
}

/// How a client ended a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// It said so: what it has written to the program is all there was to write.
    Closed,
    Gone,
}

/// Which ends the client wants.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is an end of a program")]
struct Wanted {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Wanted {
    fn of(query: &str) -> Self {
        let tty = query::flag(query, "tty");
        Self {
            stdin: query::flag(query, "input"),
            stdout: query::flag(query, "output"),
            // A terminal has one output.
            stderr: query::flag(query, "error") && !tty,
            tty,
        }
    }

    /// The channels that a client opens streams for.
    fn channels(self) -> Vec<u8> {
        let wanted = [
            (true, channel::ERROR),
            (self.stdin, channel::STDIN),
            (self.stdout, channel::STDOUT),
            (self.stderr, channel::STDERR),
            (self.tty, channel::RESIZE),
        ];
        let wanted = wanted.into_iter().filter(|(wanted, _)| *wanted);
        wanted.map(|(_, channel)| channel).collect()
    }
}

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
    talk(request, session, Wanted::of(query), "executing command in")
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
    talk(request, session, Wanted::of(query), "attaching to")
}

/// Goes on by WebSocket or SPDY, also when there is nothing to talk to: a client reads why on the
/// error channel, or it would try another protocol.
fn talk(
    request: Request<Incoming>,
    session: io::Result<Session>,
    wanted: Wanted,
    doing: &'static str,
) -> Response<Body> {
    upgrade(request, &OFFERS, move |conversation| async move {
        match conversation {
            Conversation::Socket(socket, _) => {
                let (voice, mut ear) = socket::split(*socket);
                // The client learns that it is connected before the program says anything.
                let first = [
                    (wanted.stdout, channel::STDOUT),
                    (wanted.stderr, channel::STDERR),
                ];
                if let Some((_, channel)) = first.into_iter().find(|(wanted, _)| *wanted) {
                    let _ = voice.send(channel, b"").await;
                }
                go_through(session, wanted, &voice, &mut ear, doing).await;
                socket::close(voice, ear).await;
            }
            Conversation::Spdy(_) => {
                let (reader, outgoing, writer) = wire::open(conversation);
                let reader = match streams::accept(reader, outgoing, &wanted.channels()).await {
                    Ok((voice, mut ear)) => {
                        go_through(session, wanted, &voice, &mut ear, doing).await;
                        voice.end().await;
                        ear.into_reader()
                    }
                    Err(reader) => reader,
                };
                wire::close(reader, writer).await;
            }
        }
    })
}

/// Carries a session until its end, and says how it ended.
async fn go_through(
    session: io::Result<Session>,
    wanted: Wanted,
    voice: &impl Voice,
    ear: &mut impl Ear,
    doing: &str,
) {
    let status = match session {
        Ok(session) => converse(session, wanted, voice, ear, doing).await,
        Err(error) => Some(failure(&format!("unable to upgrade connection: {error}"))),
    };
    if let Some(status) = status {
        let _ = voice
            .send(channel::ERROR, status.to_string().as_bytes())
            .await;
    }
}

/// Carries everything to and fro until the program ends (then how it ended is returned) or the
/// client goes.
async fn converse(
    session: Session,
    wanted: Wanted,
    voice: &impl Voice,
    ear: &mut impl Ear,
    doing: &str,
) -> Option<Value> {
    let Session {
        stdin,
        stdout,
        stderr,
        resize,
        ended,
    } = session;
    let (end, over) = watch::channel(false);
    let program = async {
        let ended = async {
            let code = ended.await;
            let _ = end.send(true);
            code
        };
        let (code, (), ()) = futures::join!(
            ended,
            speak(stdout, channel::STDOUT, wanted.stdout, voice, over.clone()),
            speak(stderr, channel::STDERR, wanted.stderr, voice, over.clone()),
        );
        code
    };
    let reads = stdin.is_some() && !wanted.tty;
    let mut program = std::pin::pin!(program);
    let left = tokio::select! {
        biased;
        code = &mut program => return Some(match code {
            Ok(0) => json!({"metadata": {}, "status": "Success"}),
            Ok(code) => non_zero(code),
            Err(error) => failure(&format!("error {doing} container: {error}")),
        }),
        left = listen(ear, stdin, resize) => left,
    };
    if left == Left::Closed && reads && tokio::time::timeout(ANSWER, &mut program).await.is_err() {
        let _ = ear.next().await;
        let _ = tokio::time::timeout(REST, program).await;
    }
    None
}

/// Sends what a program writes, also when nobody wants to hear it: it must not wait. A client may
/// take its time; only what holds the output open after the program's end may not.
async fn speak(
    output: Option<Output>,
    channel: u8,
    wanted: bool,
    voice: &impl Voice,
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
        if wanted && voice.send(channel, &chunk[..length]).await.is_none() {
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
    ear: &mut impl Ear,
    stdin: Option<Input>,
    resize: Option<mpsc::UnboundedSender<(u16, u16)>>,
) -> Left {
    let (typed, keys) = mpsc::channel(UNREAD);
    let mut typed = stdin.is_some().then_some(typed);
    let mut typing = tokio::spawn(type_in(keys, stdin));
    while let Some(said) = ear.next().await {
        match said {
            Said::Goodbye => {
                drop(typed);
                let _ = tokio::time::timeout(ANSWER, &mut typing).await;
                typing.abort();
                return Left::Closed;
            }
            Said::Input(bytes) => {
                if let Some(typed) = &typed {
                    // A program that has closed its input does not mind.
                    let _ = typed.send(bytes).await;
                }
            }
            Said::InputOver => drop(typed.take()),
            Said::Resize(columns, rows) => {
                if let Some(resize) = &resize {
                    let _ = resize.send((columns, rows));
                }
            }
        }
    }
    typing.abort();
    Left::Gone
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
