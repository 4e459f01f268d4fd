//! What a container reads and writes: into its log, and to whoever is attached.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Mutex, broadcast};
use tokio::task::JoinHandle;

use crate::log::{Heard, Stream, Writer};
use crate::runtime::{Input, Output};
use crate::terminal::Terminal;

/// What a container reads, until somebody ends it.
pub(super) type SharedInput = Arc<Mutex<Option<Input>>>;

/// The ends of a container, for those who join it.
#[derive(Clone)]
pub(super) struct Streams {
    pub(super) input: Option<SharedInput>,
    /// Whether the first who types ends its input.
    pub(super) once: bool,
    /// What it writes, as it writes it.
    pub(super) voice: broadcast::Sender<Heard>,
    pub(super) terminal: Option<Terminal>,
}

/// The ends of a container, as whoever started it has them.
pub(crate) struct Ends {
    pub(crate) stdin: Option<Input>,
    pub(crate) stdout: Option<Output>,
    pub(crate) stderr: Option<Output>,
    pub(crate) terminal: Option<Terminal>,
}

impl Ends {
    /// The ends of a program at a terminal.
    pub(crate) fn at(terminal: Terminal, stdin: bool) -> io::Result<Self> {
        Ok(Self {
            stdin: stdin.then(|| terminal.input()).transpose()?,
            stdout: Some(terminal.output()?),
            stderr: None,
            terminal: Some(terminal),
        })
    }

    /// Copies what a container writes into its log, until every process of it has closed its end.
    pub(super) fn copy_to(self, log: Writer, once: bool) -> (Streams, JoinHandle<()>) {
        let streams = Streams {
            input: self.stdin.map(|input| Arc::new(Mutex::new(Some(input)))),
            once,
            voice: log.voice().clone(),
            terminal: self.terminal,
        };
        let copying = tokio::spawn(async move {
            futures::join!(
                copy(&log, Stream::Stdout, self.stdout),
                copy(&log, Stream::Stderr, self.stderr),
            );
        });
        (streams, copying)
    }
}

async fn copy(log: &Writer, stream: Stream, from: Option<Output>) {
    if let Some(from) = from
        && let Err(error) = log.drain(stream, from).await
    {
        eprintln!("cannot write the log of a container: {error}");
    }
}

/// A way to a socket in a folder that is short enough for one, however deep the folder is; good
/// as long as the folder is kept open.
pub(super) fn short(folder: &Path, name: &str) -> io::Result<(std::fs::File, PathBuf)> {
    use std::os::fd::AsRawFd as _;
    let folder = std::fs::File::open(folder)?;
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    Ok((folder, path.into()))
}
