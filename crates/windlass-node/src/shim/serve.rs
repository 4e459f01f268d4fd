//! The shim's own life.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::client::{CONFIG, READY, SOCKET, ShimFile};
use super::container::{self, Running, Target};
use super::protocol::{Config, Event, Held, Request, Sandbox, Start};
use super::stream::{self, Streams};
use super::{attach, holder, plain};

/// How long whoever listens may take to hear how everything ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Becomes the shim of the pod in `folder`, until its end.
pub fn main(folder: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = runtime.and_then(|runtime| runtime.block_on(live(folder)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the shim of {} ended: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

struct Shim {
    config: Config,
    /// The first process of the shared PID namespace, if there is one.
    holder: Option<i32>,
    state: Mutex<State>,
    /// How many containers run, and how many are being started.
    running: watch::Sender<usize>,
    starting: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<(String, i32), Known>,
    listeners: Vec<mpsc::UnboundedSender<Event>>,
    /// The tasks that tell them.
    telling: Vec<JoinHandle<()>>,
    ending: bool,
}

struct Known {
    held: Held,
    target: Target,
    /// Until it ends: whoever is attached learns of the end by it.
    streams: Option<Streams>,
}

async fn live(folder: &Path) -> io::Result<()> {
    let config: Config = serde_json::from_slice(&std::fs::read(folder.join(CONFIG))?)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let holding = match &config {
        Config::Process => None,
        Config::Sandbox(sandbox) => furnish(sandbox)?,
    };
    let holder = match &holding {
        Some(child) => Some(holder::first_child(child.id()).await?),
        None => None,
    };
    let (_folder, path) = stream::short(folder, SOCKET)?;
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    ShimFile::of_this_process()?.write(folder)?;
    // Whoever started this waits for the line.
    println!("{READY}");
    let shim = Arc::new(Shim {
        config,
        holder,
        state: Mutex::default(),
        running: watch::Sender::default(),
        starting: watch::Sender::default(),
    });
    if shim.config == Config::Process {
        let shim = shim.clone();
        tokio::spawn(plain::reap(move || shim.firsts(None)));
    }
    let (end, mut ended) = mpsc::unbounded_channel();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = ended.recv() => break,
            accepted = listener.accept() => accepted,
        };
        if let Ok((connection, _)) = accepted {
            tokio::spawn(shim.clone().talk(connection, end.clone()));
        }
    }
    shim.end_all().await;
    let _ = std::fs::remove_file(&path);
    if let Some(mut child) = holding {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(())
}

/// Puts into the namespaces what belongs to them; gives the process that holds the shared one.
fn furnish(sandbox: &Sandbox) -> io::Result<Option<std::process::Child>> {
    if let Err(error) = rustix::system::sethostname(sandbox.hostname.as_bytes()) {
        eprintln!("cannot set the host name: {error}");
    }
    if sandbox.own_network {
        // All traffic of a pod goes through the node, also to its neighbours: Services depend on it.
        for name in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv4/conf/{name}/accept_redirects");
            let _ = std::fs::write(path, "0");
        }
    }
    sandbox.share_processes.then(holder::start).transpose()
}

impl Shim {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: &Event) {
        self.lock()
            .listeners
            .retain(|listener| listener.send(event.clone()).is_ok());
    }

    /// The first processes of the containers that run, but for one.
    fn firsts(&self, but: Option<&(String, i32)>) -> Vec<i32> {
        let state = self.lock();
        let running = state
            .held
            .iter()
            .filter(|(key, known)| known.held.exit.is_none() && Some(*key) != but);
        running.map(|(_, known)| known.held.pid).collect()
    }

    /// The ends of a container that runs.
    fn streams(&self, container: &str) -> Option<Streams> {
        let state = self.lock();
        let mut held = state.held.values().rev();
        held.find(|known| known.held.container == container && known.held.exit.is_none())
            .and_then(|known| known.streams.clone())
    }

    async fn talk(self: Arc<Self>, connection: UnixStream, end: mpsc::UnboundedSender<()>) {
        let (from, to) = connection.into_split();
        let mut lines = BufReader::new(from);
        let (sender, events) = mpsc::unbounded_channel();
        let mut line = String::new();
        // Whoever comes to attach says so at once, and gets nothing else.
        if !matches!(lines.read_line(&mut line).await, Ok(1..)) {
            return;
        }
        if let Ok(wish) = serde_json::from_str::<attach::Wish>(&line) {
            let streams = self.streams(&wish.container);
            if let Some(streams) = streams {
                attach::serve(streams, lines, to, wish.stdin).await;
            }
            return;
        }
        // What is being started for somebody who is gone will be held, too.
        let mut starting = self.starting.subscribe();
        let _ = starting.wait_for(|starting| *starting == 0).await;
        {
            let mut state = self.lock();
            let held = state
                .held
                .values()
                .map(|known| known.held.clone())
                .collect();
            let _ = sender.send(Event::Hello(held));
            state.listeners.push(sender);
            state.telling.retain(|telling| !telling.is_finished());
            state.telling.push(tokio::spawn(write_events(events, to)));
        }
        self.hear(lines, line, end).await;
    }

    async fn hear(
        self: Arc<Self>,
        mut lines: BufReader<OwnedReadHalf>,
        mut line: String,
        end: mpsc::UnboundedSender<()>,
    ) {
        loop {
            match serde_json::from_str(&line) {
                Ok(Request::Hello) => {}
                Ok(Request::Start(start)) => {
                    tokio::spawn(self.clone().run(start));
                }
                Ok(Request::Signal {
                    container,
                    run,
                    signal,
                }) => {
                    if let Some(known) = self.lock().held.get(&(container, run))
                        && known.held.exit.is_none()
                    {
                        known.target.signal(signal);
                    }
                }
                Ok(Request::Resize {
                    container,
                    columns,
                    rows,
                }) => {
                    let streams = self.streams(&container);
                    if let Some(terminal) = streams.and_then(|streams| streams.terminal) {
                        terminal.resize(columns, rows);
                    }
                }
                Ok(Request::End) => {
                    let _ = end.send(());
                }
                Err(error) => eprintln!("cannot read a request: {error}"),
            }
            line.clear();
            if !matches!(lines.read_line(&mut line).await, Ok(1..)) {
                return;
            }
        }
    }

    /// Runs a container to its end.
    async fn run(self: Arc<Self>, start: Start) {
        self.running.send_modify(|running| *running += 1);
        let key = (start.container.clone(), start.run);
        match self.clone().start(&key, &start).await {
            Ok(running) => {
                let others = || self.firsts(Some(&key));
                let exit = running.ended(&self.config, &start, others).await;
                if let Some(known) = self.lock().held.get_mut(&key) {
                    known.held.exit = Some(exit);
                    known.streams = None;
                }
                self.tell(&Event::Exited {
                    container: key.0,
                    run: key.1,
                    exit,
                });
            }
            Err(message) => self.tell(&Event::Failed {
                container: key.0,
                run: key.1,
                message,
            }),
        }
        self.running.send_modify(|running| *running -= 1);
    }

    async fn start(self: Arc<Self>, key: &(String, i32), start: &Start) -> Result<Running, String> {
        if self.lock().ending {
            return Err("the pod ends".to_owned());
        }
        self.starting.send_modify(|starting| *starting += 1);
        let started = container::start(&self.config, self.holder, start).await;
        if let Ok(running) = &started {
            let known = Known {
                held: running.held.clone(),
                target: running.target(),
                streams: Some(running.streams.clone()),
            };
            let mut state = self.lock();
            if state.ending {
                known.target.signal(9);
            }
            state
                .held
                .retain(|(container, _), known| *container != key.0 || known.held.exit.is_none());
            state.held.insert(key.clone(), known);
            drop(state);
            self.tell(&Event::Started(running.held.clone()));
        }
        self.starting.send_modify(|starting| *starting -= 1);
        started
    }

    async fn end_all(&self) {
        {
            let mut state = self.lock();
            state.ending = true;
            for known in state.held.values() {
                if known.held.exit.is_none() {
                    known.target.signal(9);
                }
            }
        }
        let _ = self
            .running
            .subscribe()
            .wait_for(|running| *running == 0)
            .await;
        if self.config == Config::Process {
            plain::end_strays(|| self.firsts(None)).await;
        }
        let telling = {
            let mut state = self.lock();
            state.listeners.clear();
            std::mem::take(&mut state.telling)
        };
        // Whoever listens hears how everything ended.
        let _ = tokio::time::timeout(PATIENCE, futures::future::join_all(telling)).await;
    }
}

async fn write_events(mut events: mpsc::UnboundedReceiver<Event>, mut to: OwnedWriteHalf) {
    while let Some(event) = events.recv().await {
        let Ok(mut line) = serde_json::to_vec(&event) else {
            continue;
        };
        line.push(b'\n');
        if to.write_all(&line).await.is_err() {
            return;
        }
    }
}
