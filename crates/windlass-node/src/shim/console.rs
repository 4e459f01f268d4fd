//! The socket over which the OCI runtime hands out the terminal of a container.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::net::UnixListener;

use super::stream::short;

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
