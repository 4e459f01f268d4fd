//! The node's side: starting a shim, finding it again, and talking to it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{ChildStdout, Command};
use tokio::sync::{mpsc, watch};

use super::protocol::{Config, Event, Held, Request};
use super::{SUBCOMMAND, attach, stream};
use crate::process::tree::{self, Leader};

pub(super) const CONFIG: &str = "shim-config.json";
pub(super) const SOCKET: &str = "shim.sock";
const FILE: &str = "shim.json";
const LOG: &str = "shim.log";
/// What a shim says when it can be talked to.
pub(super) const READY: &str = "ready";
/// How long a shim may take to start, to say what it holds, and to end.
const LIMIT: Duration = Duration::from_secs(30);

/// Which process a shim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ShimFile(Leader);

impl ShimFile {
    pub(super) fn of_this_process() -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let leader =
            Leader::of(pid).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        Ok(Self(leader))
    }

    pub(crate) fn pid(self) -> i32 {
        self.0.pid
    }

    pub(super) fn write(self, folder: &Path) -> io::Result<()> {
        let draft = folder.join("shim.json.draft");
        std::fs::write(&draft, serde_json::to_vec(&self)?)?;
        std::fs::rename(draft, folder.join(FILE))
    }

    pub(crate) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()
    }

    pub(crate) fn is_alive(self) -> bool {
        Leader::alive(self.0.pid) == Some(self.0)
    }

    async fn gone(self) -> bool {
        for _ in 0..LIMIT.as_millis() / 5 {
            if !self.is_alive() {
                return true;
            }
            // Another process's end can only be asked for.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }
}

/// A shim that runs.
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) process: ShimFile,
    folder: PathBuf,
    requests: mpsc::UnboundedSender<Request>,
    runs: Arc<Mutex<BTreeMap<(String, i32), Link>>>,
    gone: watch::Receiver<bool>,
}

/// Where the news of one run go.
pub(crate) type Link = mpsc::UnboundedSender<Event>;

/// Starts a shim for the pod in `folder`.
pub(crate) async fn spawn(
    folder: &Path,
    program: &[OsString],
    config: &Config,
) -> io::Result<Arc<Shim>> {
    std::fs::write(folder.join(CONFIG), serde_json::to_vec(config)?)?;
    let _ = std::fs::remove_file(folder.join(FILE));
    let log = std::fs::File::create(folder.join(LOG))?;
    let mut command = Command::from(command(program, config));
    let mut child = command
        .arg(SUBCOMMAND)
        .arg(folder)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        // Ctrl-C in the node's terminal is not meant for it.
        .process_group(0)
        .spawn()?;
    let output = child.stdout.take();
    let ready = tokio::time::timeout(LIMIT, is_ready(output)).await;
    if !ready.unwrap_or_default() {
        let _ = child.kill().await;
        let why = std::fs::read_to_string(folder.join(LOG)).unwrap_or_default();
        let message = format!("the pod's shim did not start: {}", why.trim());
        return Err(io::Error::other(message));
    }
    // Nobody else can collect it when it ends.
    tokio::spawn(async move { child.wait().await });
    let (shim, _) = connect(folder).await?;
    Ok(shim)
}

/// How a shim is called: in namespaces of its own, if it is to hold some.
fn command(program: &[OsString], config: &Config) -> std::process::Command {
    let mut words: Vec<&OsStr> = Vec::new();
    if let Config::Sandbox(sandbox) = config {
        words.extend(["unshare", "--mount", "--ipc", "--uts"].map(OsStr::new));
        if sandbox.own_network {
            words.push(OsStr::new("--net"));
        }
        words.push(OsStr::new("--"));
    }
    words.extend(program.iter().map(OsString::as_os_str));
    let mut command = std::process::Command::new(words.first().copied().unwrap_or_default());
    command.args(words.iter().skip(1));
    command
}

/// Whether a shim says that it can be talked to, before it ends.
async fn is_ready(output: Option<ChildStdout>) -> bool {
    let Some(output) = output else {
        return false;
    };
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line.ends_with(READY) {
            return true;
        }
    }
    false
}

/// The shim of the pod in `folder`, if it still runs, and what it holds.
pub(crate) async fn find(folder: &Path) -> Option<(Arc<Shim>, Vec<Held>)> {
    let process = ShimFile::read(folder)?;
    if !process.is_alive() {
        return None;
    }
    match tokio::time::timeout(LIMIT, connect(folder)).await {
        Ok(Ok(found)) => Some(found),
        Ok(Err(error)) => {
            tracing::warn!(%error, folder = %folder.display(), "a pod's shim does not answer and is ended");
            end_by_force(folder).await;
            None
        }
        Err(_) => {
            end_by_force(folder).await;
            None
        }
    }
}

/// Ends the shim of the pod in `folder` without asking it.
pub(crate) async fn end_by_force(folder: &Path) {
    if let Some(process) = ShimFile::read(folder) {
        tree::send_to(process.0, Signal::KILL);
        process.gone().await;
    }
}

async fn connect(folder: &Path) -> io::Result<(Arc<Shim>, Vec<Held>)> {
    let process = ShimFile::read(folder)
        .ok_or_else(|| io::Error::other("the pod's shim did not say which process it is"))?;
    let (_folder, path) = stream::short(folder, SOCKET)?;
    let (from, mut to) = UnixStream::connect(path).await?.into_split();
    to.write_all(&line(&Request::Hello)?).await?;
    let mut lines = BufReader::new(from).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    let Event::Hello(held) = serde_json::from_str(&first)? else {
        return Err(io::Error::other("the pod's shim did not say what it holds"));
    };
    let (requests, mut wanted) = mpsc::unbounded_channel();
    let (leave, gone) = watch::channel(false);
    let runs: Arc<Mutex<BTreeMap<(String, i32), Link>>> = Arc::default();
    tokio::spawn(async move {
        while let Some(request) = wanted.recv().await {
            let Ok(line) = line(&request) else { continue };
            if to.write_all(&line).await.is_err() {
                return;
            }
        }
    });
    let heard = runs.clone();
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            let Ok(event) = serde_json::from_str::<Event>(&line) else {
                continue;
            };
            let Some((container, run)) = event.run() else {
                continue;
            };
            let key = (container.to_owned(), run);
            let mut runs = heard.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(link) = runs.get(&key) {
                let last = matches!(event, Event::Exited { .. } | Event::Failed { .. });
                let _ = link.send(event);
                if last {
                    runs.remove(&key);
                }
            }
        }
        // Whoever waits for news learns that there will be none.
        heard.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let _ = leave.send(true);
    });
    let shim = Shim {
        process,
        folder: folder.to_owned(),
        requests,
        runs,
        gone,
    };
    Ok((Arc::new(shim), held))
}

fn line(request: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    Ok(line)
}

impl Shim {
    pub(crate) fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    pub(crate) fn ask(&self, request: Request) {
        let _ = self.requests.send(request);
    }

    /// The news of one run from now on; their end without an exit means that the shim is gone.
    pub(crate) fn follow(&self, container: &str, run: i32) -> mpsc::UnboundedReceiver<Event> {
        let (sender, news) = mpsc::unbounded_channel();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_gone() {
            runs.insert((container.to_owned(), run), sender);
        }
        news
    }

    /// Ends the shim and everything it holds; false when that took force, and something of it may
    /// be left.
    pub(crate) async fn end(&self) -> bool {
        let mut orderly = !self.is_gone();
        self.ask(Request::End);
        let mut gone = self.gone.clone();
        // It lets go of its connection last of all; a moment later it is gone.
        let heard = tokio::time::timeout(LIMIT, gone.wait_for(|gone| *gone))
            .await
            .is_ok();
        orderly &= heard && self.process.gone().await;
        if !orderly {
            end_by_force(&self.folder).await;
        }
        orderly
    }

    /// A connection that joins a container.
    pub(crate) async fn attach(&self, wish: &attach::Wish) -> io::Result<UnixStream> {
        let (_folder, path) = stream::short(&self.folder, SOCKET)?;
        let mut connection = UnixStream::connect(path).await?;
        connection.write_all(&line(wish)?).await?;
        Ok(connection)
    }
}
