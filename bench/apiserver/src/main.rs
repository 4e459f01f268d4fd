//! Our API server, in memory and durable, alone and with the controllers of `windlass up --no-node`,
//! and kube-apiserver with etcd, under the same load in one run; and what hyper and rustls alone can
//! do there. `make bench-apiserver` runs it.
//!
//! One generator for all: 32 kept-alive HTTP/1.1 connections over TLS on two threads, each with
//! one request under way. It shares the cores with what it measures, so only figures of one run
//! compare. Everybody's throttling is off.

mod certificates;
mod connection;
mod error;
mod load;
mod measure;
mod report;
mod requests;
mod subject;
mod watchers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use windlass_apiserver::{ApiServer, Config};

use certificates::Certificates;
use error::{During as _, Result};
use measure::{Figures, Plan};
use report::Report;
use subject::{Kind, Places};

/// Measures our API server beside kube-apiserver.
#[derive(Parser)]
struct Arguments {
    /// The folder with kube-apiserver and etcd
    #[arg(long, default_value = ".real/bin")]
    real: PathBuf,
    /// Leave kube-apiserver out
    #[arg(long)]
    only_ours: bool,
    /// How long each rate is measured
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Measure only the subjects whose names contain this
    #[arg(long)]
    only: Option<String>,
    /// Where subjects store things: a folder on a disk
    #[arg(long, default_value = "target")]
    data: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Every watcher is a file on both sides.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

fn start_in_process() -> (Duration, Duration) {
    let start = || {
        let began = Instant::now();
        let server = ApiServer::new(Config::default());
        let elapsed = began.elapsed();
        drop(server);
        elapsed
    };
    (start(), start())
}

fn run(arguments: &Arguments) -> Result<()> {
    raise_file_limit();
    // Before anything else has warmed what all servers of a process share.
    let in_process = start_in_process();
    let pki = tempfile::tempdir().during("make a folder for certificates")?;
    let certificates = Certificates::make(pki.path())?;
    let program = std::env::current_exe().during("find our own programs")?;
    let places = Places {
        programs: program.parent().map_or_else(PathBuf::new, PathBuf::from),
        real: arguments.real.clone(),
        pki: pki.path().to_owned(),
        data: arguments.data.clone(),
    };
    let plan = Plan {
        places: &places,
        certificates: &certificates,
        seconds: Duration::from_secs(arguments.seconds),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .during("start a runtime")?;
    let measure = |kind: Kind| -> Result<Option<Figures>> {
        let wanted = |part: &String| kind.name().contains(part.as_str());
        if !arguments.only.as_ref().is_none_or(wanted) {
            return Ok(None);
        }
        eprintln!("measuring: {}", kind.name());
        let figures = runtime.block_on(plan.server(kind))?;
        // Seen at once, whatever becomes of the others.
        eprintln!("{figures:#?}");
        Ok(Some(figures))
    };
    let mut report = Report {
        in_process,
        in_memory: measure(Kind::OursInMemory)?,
        durable: measure(Kind::OursDurable)?,
        up_in_memory: measure(Kind::UpInMemory)?,
        up_durable: measure(Kind::UpDurable)?,
        ..Report::default()
    };
    if !arguments.only_ours {
        report.kubernetes = measure(Kind::Kubernetes)?;
        report.kubernetes_unsafe = measure(Kind::KubernetesUnsafe)?;
    }
    let bytes = report
        .in_memory
        .as_ref()
        .map_or(512, |figures| figures.object_bytes);
    if arguments.only.is_none() {
        eprintln!("measuring: {}", Kind::Ceiling(bytes).name());
        report.ceiling = Some(runtime.block_on(plan.ceiling(bytes))?);
    }
    report.print();
    Ok(())
}
