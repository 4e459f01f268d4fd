//! Joining a container: what it says comes from its shim, what is typed goes there.

use std::io;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::io::{AsyncWriteExt as _, duplex};
use tokio::sync::mpsc;

use super::pods::Live;
use crate::runtime::Session;
use crate::shim::attach::{Wish, read_frame};
use crate::shim::{Request, Shim};

/// How much of what is said may wait for a slow listener.
const PIPE: usize = 64 * 1024;

/// Joins a running container.
pub(super) async fn attach(
    shim: Arc<Shim>,
    container: &str,
    live: &Live,
    stdin: bool,
) -> io::Result<Session> {
    if stdin && !live.stdin {
        return Err(io::Error::other("the container does not read any input"));
    }
    let wish = Wish {
        container: container.to_owned(),
        stdin,
    };
    let (mut from, to) = shim.attach(&wish).await?.into_split();
    let (near, mut out) = duplex(PIPE);
    let (near_error, mut error) = duplex(PIPE);
    let copying = tokio::spawn(async move {
        while let Some((stream, piece)) = read_frame(&mut from).await? {
            // One who does not listen to both hears one.
            let _ = match stream {
                2 => error.write_all(&piece).await,
                _ => out.write_all(&piece).await,
            };
        }
        io::Result::Ok(())
    });
    Ok(Session {
        stdin: stdin.then(|| Box::new(to) as _),
        stdout: Some(Box::new(near)),
        stderr: (!live.terminal).then(|| Box::new(near_error) as _),
        resize: live.terminal.then(|| resizing(shim, container.to_owned())),
        ended: async move {
            copying.await.map_err(io::Error::other)??;
            Ok(0)
        }
        .boxed(),
    })
}

fn resizing(shim: Arc<Shim>, container: String) -> mpsc::UnboundedSender<(u16, u16)> {
    let (sender, mut sizes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some((columns, rows)) = sizes.recv().await {
            shim.ask(Request::Resize {
                container: container.clone(),
                columns,
                rows,
            });
        }
    });
    sender
}
