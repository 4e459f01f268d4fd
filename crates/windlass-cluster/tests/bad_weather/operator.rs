//! The operator whose process is looked at, and what starts it again.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Operator, Reconciler, Result, handle::Owned,
};

use crate::{CHILD, NAME, served::Process};

/// How the operator says that an object is gone.
const GONE: &str = "gone: ";

/// Copies the note of each Secret to a `ConfigMap`, and says so.
struct Copier(Owned<ConfigMap>);

impl Reconciler for Copier {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let Some(note) = secret.annotations().get("note") else {
            return Ok(Action::done());
        };
        let mut copy = ConfigMap::default();
        copy.metadata.name = Some(secret.name_any());
        copy.data = Some([("note".to_owned(), note.clone())].into());
        self.0.apply(ctx, copy).await?;
        ctx.event(Event::normal("Copied", format!("copied {note}")));
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        eprintln!("{GONE}{}", key.name());
        Ok(())
    }
}

pub(crate) fn operator() -> Operator {
    let declare = |declare: &mut Declare<Secret>| Copier(declare.owns());
    Operator::new(NAME).controller(Controller::of_existing().reconciler(declare))
}

/// What the process has said so far.
#[derive(Default)]
struct Said {
    probes: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
}

/// The process of the operator, which is started again when it ends.
pub(crate) struct Supervised {
    kubeconfig: PathBuf,
    process: Process,
    said: Arc<Mutex<Said>>,
    /// What it reported as gone, all processes together.
    pub(crate) gone: Arc<Mutex<Vec<String>>>,
}

impl Supervised {
    pub(crate) fn start(kubeconfig: PathBuf) -> Self {
        let gone = Arc::default();
        let (process, said) = spawn(&kubeconfig, &gone);
        Self {
            kubeconfig,
            process,
            said,
            gone,
        }
    }

    /// Starts it again if it has ended, as the kubelet would.
    pub(crate) fn look_after(&mut self) {
        if self.process.has_ended() {
            (self.process, self.said) = spawn(&self.kubeconfig, &self.gone);
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Resident memory in KiB, and open files; none when it has just ended.
    pub(crate) fn size(&self) -> Option<(u64, u64)> {
        let folder = format!("/proc/{}", self.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).ok()?;
        let memory = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let memory = memory.trim().trim_end_matches(" kB").parse().ok()?;
        let files = std::fs::read_dir(format!("{folder}/fd")).ok()?.count();
        Some((memory, files as u64))
    }

    /// Whether `/readyz` says that it is ready.
    pub(crate) async fn is_ready(&self) -> bool {
        let address = self.said.lock().unwrap().probes;
        let answer = get(address, "/readyz").await;
        answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    /// A number of its metrics, over all labels.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let address = self.said.lock().unwrap().metrics;
        let text = get(address, "/metrics").await?;
        let series = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Some(values.sum())
    }
}

fn spawn(kubeconfig: &Path, gone: &Arc<Mutex<Vec<String>>>) -> (Process, Arc<Mutex<Said>>) {
    let mut process = Process::this_program(kubeconfig, |command| {
        command
            .args([
                "run",
                "--leader-elect",
                "--leader-election-namespace=default",
            ])
            .env(CHILD, "operator")
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped());
    });
    let lines = BufReader::new(process.0.stderr.take().unwrap()).lines();
    let said: Arc<Mutex<Said>> = Arc::default();
    let (noted, gone) = (said.clone(), gone.clone());
    std::thread::spawn(move || {
        for line in lines.map_while(std::io::Result::ok) {
            if let Some(name) = line.strip_prefix(GONE) {
                gone.lock().unwrap().push(name.to_owned());
            } else if let Some((_, address)) =
                line.split_once("answering /healthz and /readyz address=")
            {
                noted.lock().unwrap().probes = address.trim().parse().ok();
            } else if let Some((_, rest)) = line.split_once("serving http://") {
                let address = rest.split('/').next().unwrap_or_default();
                noted.lock().unwrap().metrics = address.parse().ok();
            }
            if std::env::var_os("BAD_WEATHER_LOG").is_some() {
                eprintln!("{line}");
            }
        }
    });
    (process, said)
}

async fn get(address: Option<SocketAddr>, path: &str) -> Option<String> {
    let asked = async {
        let mut stream = TcpStream::connect(address?).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    };
    timeout(Duration::from_secs(5), asked).await.ok()?
}
