//! A terminal: what an interactive program believes it is typed at.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

use crate::runtime::{Input, Output};

/// The side of the terminal that stands for the person. Clones are the same terminal.
#[derive(Debug, Clone)]
pub(crate) struct Terminal(Arc<OwnedFd>);

impl Terminal {
    /// A new terminal, and the side that the program gets.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let person = openpt(flags)?;
        grantpt(&person)?;
        unlockpt(&person)?;
        let program = ioctl_tiocgptpeer(&person, flags)?;
        Ok((Self::of(person)?, program))
    }

    /// The terminal whose person's side somebody else has opened.
    pub(crate) fn of(person: OwnedFd) -> io::Result<Self> {
        let status = rustix::fs::fcntl_getfl(&person)?;
        rustix::fs::fcntl_setfl(&person, status | OFlags::NONBLOCK)?;
        Ok(Self(Arc::new(person)))
    }

    /// What is typed.
    pub(crate) fn input(&self) -> io::Result<Input> {
        // It is no pipe, but it is read and written as one.
        let typed = pipe::Sender::from_owned_fd_unchecked(self.0.try_clone()?)?;
        Ok(Box::new(typed))
    }

    /// What is shown.
    pub(crate) fn output(&self) -> io::Result<Output> {
        let shown = pipe::Receiver::from_owned_fd_unchecked(self.0.try_clone()?)?;
        Ok(Box::new(Screen(shown)))
    }

    /// Tells the program how large its window is.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        if let Err(error) = tcsetwinsize(&*self.0, size) {
            tracing::debug!(%error, "cannot tell a program the size of its terminal");
        }
    }
}

/// What a terminal shows, until the last program has closed its side.
struct Screen(pipe::Receiver);

impl AsyncRead for Screen {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.0).poll_read(cx, buffer));
        Poll::Ready(match read {
            // This is how a terminal says that nobody is there any more.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                Ok(())
            }
            read => read,
        })
    }
}
