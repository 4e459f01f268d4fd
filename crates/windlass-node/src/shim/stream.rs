//! What a container reads and writes: into its log, and to whoever is attached.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Mutex, broadcast};
use tokio::task::JoinHandle;

use crate::log::{Stream, Writer};

/// How many pieces of output somebody who is attached may be behind.
const BEHIND: usize = 256;

/// A piece of output: which of the two it is, and what it says.
pub(super) type Piece = (u8, Arc<[u8]>);

/// What a container reads, until somebody ends it.
pub(super) type Input = Arc<Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>;

/// The ends of a container.
#[derive(Clone)]
pub(super) struct Streams {
    pub(super) input: Option<Input>,
    pub(super) output: broadcast::Sender<Piece>,
}

/// Copies a container's pipes into its log.
pub(super) fn of_pipes(
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    error: Option<ChildStderr>,
    log: Writer,
) -> (Streams, JoinHandle<()>) {
    let (sender, _) = broadcast::channel(BEHIND);
    let streams = Streams {
        input: input.map(|input| Arc::new(Mutex::new(Some(Box::new(input) as _)))),
        output: sender.clone(),
    };
    let copying = tokio::spawn(async move {
        futures::join!(
            copy(output, Stream::Stdout, &log, &sender),
            copy(error, Stream::Stderr, &log, &sender),
        );
    });
    (streams, copying)
}

/// Copies a container's terminal into its log.
pub(super) fn of_terminal(
    master: OwnedFd,
    log: Writer,
    stdin: bool,
) -> io::Result<(Streams, JoinHandle<()>)> {
    let (sender, _) = broadcast::channel(BEHIND);
    let writer = tokio::fs::File::from_std(master.try_clone()?.into());
    let reader = tokio::fs::File::from_std(master.into());
    let streams = Streams {
        input: stdin.then(|| Arc::new(Mutex::new(Some(Box::new(writer) as _)))),
        output: sender.clone(),
    };
    let copying = tokio::spawn(async move {
        copy(Some(reader), Stream::Stdout, &log, &sender).await;
    });
    Ok((streams, copying))
}

async fn copy(
    from: Option<impl AsyncRead + Unpin>,
    stream: Stream,
    log: &Writer,
    attached: &broadcast::Sender<Piece>,
) {
    let Some(mut from) = from else {
        return;
    };
    let (mut to, pipe) = tokio::io::duplex(64 * 1024);
    let number = match stream {
        Stream::Stdout => 1,
        Stream::Stderr => 2,
    };
    let passing = async move {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match from.read(&mut buffer).await {
                // The master of a terminal fails when its last user is gone.
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    if attached.receiver_count() > 0 {
                        let _ = attached.send((number, buffer[..length].into()));
                    }
                    if to.write_all(&buffer[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    let ((), written) = futures::join!(passing, log.drain(stream, pipe));
    if let Err(error) = written {
        tracing::warn!(%error, "cannot write the log of a container");
    }
}

/// The socket over which the OCI runtime hands out the terminal of a container.
pub(super) struct Console {
    listener: UnixListener,
    /// Keeps the path below usable.
    _folder: std::fs::File,
    path: PathBuf,
}

impl Console {
    pub(super) fn listen(bundle: &Path) -> io::Result<Self> {
        let (folder, path) = short(bundle, "console.sock")?;
        let listener = UnixListener::bind(&path)?;
        Ok(Self {
            listener,
            _folder: folder,
            path,
        })
    }

    /// A path for the OCI runtime, which is a child of this process.
    pub(super) fn path(&self) -> PathBuf {
        // Its own `/proc/self` is another one.
        let own = self.path.to_string_lossy();
        own.replacen("/proc/self", &format!("/proc/{}", std::process::id()), 1)
            .into()
    }

    /// The master of the terminal; none when the runtime ended without giving one.
    pub(super) async fn accept(
        &self,
        runtime: impl Future<Output = io::Result<std::process::ExitStatus>>,
    ) -> io::Result<Option<OwnedFd>> {
        let (connection, _) = tokio::select! {
            biased;
            accepted = self.listener.accept() => accepted?,
            ended = runtime => {
                ended?;
                return Ok(None);
            }
        };
        connection.readable().await?;
        let connection = connection.into_std()?;
        connection.set_nonblocking(false)?;
        let mut name = [0; 4096];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        recvmsg(
            connection.as_fd(),
            &mut [io::IoSliceMut::new(&mut name)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        let mut descriptors = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
            _ => None,
        });
        Ok(descriptors.next())
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
