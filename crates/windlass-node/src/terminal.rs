//! A terminal: what an interactive program believes it is typed at.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The side of the terminal that stands for the person. Clones are the same terminal.
#[derive(Debug, Clone)]
pub(crate) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// A new terminal, and the side that the program gets.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let person = openpt(flags)?;
        grantpt(&person)?;
        unlockpt(&person)?;
        let program = ioctl_tiocgptpeer(&person, flags)?;
        let status = rustix::fs::fcntl_getfl(&person)?;
        rustix::fs::fcntl_setfl(&person, status | OFlags::NONBLOCK)?;
        Ok((Self(Arc::new(AsyncFd::new(person)?)), program))
    }

    /// Tells the program how large its window is.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        if let Err(error) = tcsetwinsize(self.0.get_ref(), size) {
            tracing::debug!(%error, "cannot tell a program the size of its terminal");
        }
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let space = buffer.initialize_unfilled();
            let read = ready.try_io(|fd| match rustix::io::read(fd.get_ref(), &mut *space) {
                // The last program has closed its side.
                Err(rustix::io::Errno::IO) => Ok(0),
                read => read.map_err(io::Error::from),
            });
            if let Ok(read) = read {
                return Poll::Ready(read.map(|count| buffer.advance(count)));
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            let write =
                ready.try_io(|fd| rustix::io::write(fd.get_ref(), bytes).map_err(io::Error::from));
            if let Ok(written) = write {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
