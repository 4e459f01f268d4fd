//! The node's side: starting a shim, finding it again, and talking to it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};

use super::protocol::{Config, Event, Held, Request};
use super::{SUBCOMMAND, attach, stream};

pub(super) const CONFIG: &str = "shim-config.json";
pub(super) const SOCKET: &str = "shim.sock";
const FILE: &str = "shim.json";
const LOG: &str = "shim.log";
/// How long a shim may take to start, to say what it holds, and to end.
const LIMIT: Duration = Duration::from_secs(30);

/// Which process a shim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShimFile {
    pub(crate) pid: i32,
    /// In clock ticks since the machine was started.
    start: u64,
}

impl ShimFile {
    pub(super) fn of_this_process() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self {
            pid,
            start: start_time(pid).unwrap_or_default(),
        }
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
        start_time(self.pid) == Some(self.start)
    }

    fn kill(self) {
        if let Some(pid) = Pid::from_raw(self.pid)
            && let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
            && self.is_alive()
        {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
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
    let mut command = Command::new("unshare");
    command.args(["--mount", "--ipc", "--uts"]);
    if config.own_network {
        command.arg("--net");
    }
    let mut child = command
        .arg("--")
        .args(program)
        .arg(SUBCOMMAND)
        .arg(folder)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        // Ctrl-C in the node's terminal is not meant for it.
        .process_group(0)
        .spawn()?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        let line = BufReader::new(output.take(16)).read_line(&mut said).await;
        line?;
    }
    // Nobody else can collect it when it ends.
    tokio::spawn(async move { child.wait().await });
    if said.trim() != "ready" {
        let why = std::fs::read_to_string(folder.join(LOG)).unwrap_or_default();
        let message = format!("the pod's shim did not start: {}", why.trim());
        return Err(io::Error::other(message));
    }
    let (shim, _) = connect(folder).await?;
    Ok(shim)
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
        process.kill();
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

    /// Ends the shim and everything it holds.
    pub(crate) async fn end(&self) {
        self.ask(Request::End);
        if !self.process.gone().await {
            end_by_force(&self.folder).await;
        }
    }

    /// A connection that joins a container.
    pub(crate) async fn attach(&self, wish: &attach::Wish) -> io::Result<UnixStream> {
        let (_folder, path) = stream::short(&self.folder, SOCKET)?;
        let mut connection = UnixStream::connect(path).await?;
        connection.write_all(&line(wish)?).await?;
        Ok(connection)
    }
}

/// When a process started; none when it ended, even if nobody has collected it yet.
fn start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; what follows it is plain.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
