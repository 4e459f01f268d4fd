//! One run of a probe against a container.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;

use crate::handler::{self, HandlerError, Target, dial};
use crate::runtime::Runtime;

/// How probes introduce themselves.
const AGENT: &str = "kube-probe/1.36";

/// The outcome of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It answered as it should.
    Success,
    /// It did not, and this is what was seen.
    Failure(String),
    /// It could not be asked, and this is why: that says nothing about the container.
    Error(String),
}

/// Runs a probe once.
pub(crate) async fn check<R: Runtime>(
    probe: &Probe,
    target: &Target<R>,
    timeout: Duration,
) -> Outcome {
    match tokio::time::timeout(timeout, run(probe, target)).await {
        Ok(Ok(Ok(()))) => Outcome::Success,
        Ok(Ok(Err(seen))) => Outcome::Failure(seen.to_string()),
        Ok(Err(why)) => Outcome::Error(why.to_string()),
        Err(_) => Outcome::Failure(late(probe, timeout)),
    }
}

/// Why a container could not be asked.
#[derive(Debug, thiserror::Error)]
enum Unasked {
    #[error(transparent)]
    Handler(#[from] HandlerError),
    #[error(transparent)]
    Port(#[from] std::num::TryFromIntError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("missing probe handler")]
    Nothing,
}

/// What is wrong with what it answered.
#[derive(Debug, thiserror::Error)]
enum Unwell {
    #[error(transparent)]
    Handler(#[from] HandlerError),
    #[error("HTTP probe failed with statuscode: {0}")]
    Status(u16),
    #[error("command ended with exit code {0}")]
    Code(i32),
    #[error("{0}")]
    Said(String),
}

/// What the container answered, or why it could not be asked.
async fn run<R: Runtime>(probe: &Probe, target: &Target<R>) -> Result<Result<(), Unwell>, Unasked> {
    if let Some(tcp) = &probe.tcp_socket {
        let host = target.host(tcp.host.as_deref());
        let dialled = dial(&host, target.port(&tcp.port)?).await;
        Ok(dialled.map(drop).map_err(Unwell::from))
    } else if let Some(get) = &probe.http_get {
        target.port(&get.port)?;
        Ok(match handler::get(target, get, AGENT).await {
            Ok(status) if status.is_success() || status.is_redirection() => Ok(()),
            Ok(status) => Err(Unwell::Status(status.as_u16())),
            Err(error) => Err(error.into()),
        })
    } else if let Some(grpc) = &probe.grpc {
        let port = u16::try_from(grpc.port)?;
        let service = grpc.service.as_deref().unwrap_or_default();
        let asked = handler::check_grpc(&target.host(None), port, service).await;
        Ok(asked.map_err(Unwell::from))
    } else if let Some(exec) = &probe.exec {
        let command = exec.command.as_deref().unwrap_or_default();
        let (code, said) = target.command(command).await?;
        Ok(match (code, said.trim()) {
            (0, _) => Ok(()),
            (code, "") => Err(Unwell::Code(code)),
            (_, said) => Err(Unwell::Said(said.to_owned())),
        })
    } else {
        Err(Unasked::Nothing)
    }
}

fn late(probe: &Probe, timeout: Duration) -> String {
    let seconds = timeout.as_secs();
    match &probe.exec {
        Some(exec) => {
            let command = exec.command.as_deref().unwrap_or_default().join(" ");
            format!("command timed out: \"{command}\" timed out after {seconds}s")
        }
        None => format!("no answer within {seconds}s"),
    }
}

#[cfg(test)]
mod tests;
