//! Talking to a container: commands run beside its process, and joining the process itself.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;

use futures::FutureExt;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::process::Child;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex, broadcast, mpsc};

use super::container::exit_code;
use super::place::{Place, Spawned};
use super::runtime::Live;
use super::terminal::Terminal;
use crate::image;
use crate::log::{Heard, Stream};
use crate::runtime::{Execution, Input, Output, Session};

/// How much of what is said may wait for a slow listener.
const PIPE: usize = 64 * 1024;

/// What a container reads, for those who join it.
pub(super) type SharedInput = Arc<Mutex<Option<Input>>>;

/// Runs a command where a container runs.
pub(super) fn exec(place: &Place, execution: &Execution) -> io::Result<Session> {
    let Some((program, args)) = execution.command.split_first() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "you must specify at least one command for the container",
        ));
    };
    let path = place.environment.get("PATH").unwrap_or_default();
    let found = image::find(program, path).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("exec: \"{program}\": executable file not found in $PATH"),
        )
    })?;
    let spawned = place
        .spawn(&found, args, execution.tty, execution.stdin)
        .map_err(|error| io::Error::new(error.kind(), format!("exec: \"{program}\": {error}")))?;
    let Spawned {
        child,
        stdin,
        stdout,
        stderr,
        terminal,
    } = spawned;
    let mut running = Running(child);
    Ok(Session {
        stdin,
        stdout,
        stderr,
        resize: terminal.map(|terminal| resizing(&terminal)),
        ended: async move { running.wait().await.map(exit_code) }.boxed(),
    })
}

/// Joins a running container.
pub(super) fn attach(live: &Live, stdin: bool) -> io::Result<Session> {
    let stdin = match (&live.stdin, stdin) {
        (_, false) => None,
        (Some(input), true) => Some(typing(input.clone(), live.stdin_once)),
        (None, true) => {
            return Err(io::Error::other("the container does not read any input"));
        }
    };
    let mut progress = live.progress.clone();
    let with_terminal = live.terminal.is_some();
    Ok(Session {
        stdin,
        stdout: Some(listening(live.voice.subscribe(), Stream::Stdout)),
        stderr: (!with_terminal).then(|| listening(live.voice.subscribe(), Stream::Stderr)),
        resize: live.terminal.as_ref().map(resizing),
        ended: async move {
            // A writer that is gone has ended, too.
            let _ = progress.wait_for(|progress| progress.ended).await;
            Ok(0)
        }
        .boxed(),
    })
}

fn resizing(terminal: &Terminal) -> mpsc::UnboundedSender<(u16, u16)> {
    let (sender, mut sizes) = mpsc::unbounded_channel();
    let terminal = terminal.clone();
    tokio::spawn(async move {
        while let Some((columns, rows)) = sizes.recv().await {
            terminal.resize(columns, rows);
        }
    });
    sender
}

/// An input that ends up in the container's; the end of it is the end of the container's only when
/// that wants to be typed at once.
fn typing(input: SharedInput, once: bool) -> Input {
    let (near, mut far): (DuplexStream, DuplexStream) = duplex(PIPE);
    tokio::spawn(async move {
        let mut input = input.lock().await;
        if let Some(open) = input.as_mut()
            && let Err(error) = tokio::io::copy(&mut far, open).await
        {
            tracing::debug!(%error, "a container does not read its input");
        }
        if once {
            input.take();
        }
    });
    Box::new(near)
}

/// What a container writes from now on.
fn listening(mut voice: broadcast::Receiver<Heard>, stream: Stream) -> Output {
    let (near, mut far) = duplex(PIPE);
    tokio::spawn(async move {
        loop {
            match voice.recv().await {
                Ok(heard) if heard.stream == stream => {
                    if far.write_all(&heard.bytes).await.is_err() {
                        return;
                    }
                }
                // A listener that is too slow misses something.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
    Box::new(near)
}

/// A command that ends, with what it started, when nobody waits for it any more.
struct Running(Child);

impl Running {
    /// Waits for the end; what the command leaves behind may still write for a moment.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // Not reaped yet, so the number is its own.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}
