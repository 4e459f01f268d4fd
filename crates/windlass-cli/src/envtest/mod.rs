//! What this program becomes when it is called by the names that envtest looks for.
//!
//! envtest starts `etcd` and `kube-apiserver` from the folder that `KUBEBUILDER_ASSETS` names, with
//! flags of theirs, and waits until both say that they are healthy. Here the API server keeps its
//! objects itself, so that the `etcd` has nothing to do but say so. `kubectl` is the one on the path.

mod apiserver;
mod etcd;
mod flags;
mod kubectl;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The names, each that of a link to this program.
pub(crate) const NAMES: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// Becomes what this program was called as, if that is one of the names.
pub(crate) fn become_one() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    let called = args.next()?;
    let args: Vec<OsString> = args.collect();
    match Path::new(&called).file_name()?.to_str()? {
        "etcd" => Some(etcd::main(&args)),
        "kube-apiserver" => Some(apiserver::main(&args)),
        "kubectl" => Some(kubectl::main(&args)),
        _ => None,
    }
}

/// Runs something to its end; a sentence on standard error says what went wrong.
fn run(name: &str, work: impl Future<Output = Result<(), String>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{name}: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Waits until this process is asked to end.
async fn ended() -> Result<(), String> {
    let mut signals = crate::interrupt::Signals::listen().map_err(|error| error.to_string())?;
    signals.asked().await;
    Ok(())
}
