//! One run of a probe against a container.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;

use crate::handler::{self, Target, dial};
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
        Ok(Ok(Err(seen))) => Outcome::Failure(seen),
        Ok(Err(why)) => Outcome::Error(why),
        Err(_) => Outcome::Failure(late(probe, timeout)),
    }
}

/// What the container answered, or why it could not be asked.
async fn run<R: Runtime>(probe: &Probe, target: &Target<R>) -> Result<Result<(), String>, String> {
    if let Some(tcp) = &probe.tcp_socket {
        let host = target.host(tcp.host.as_deref());
        Ok(dial(&host, target.port(&tcp.port)?).await.map(drop))
    } else if let Some(get) = &probe.http_get {
        target.port(&get.port)?;
        Ok(handler::get(target, get, AGENT).await.and_then(|status| {
            if status.is_success() || status.is_redirection() {
                return Ok(());
            }
            let code = status.as_u16();
            Err(format!("HTTP probe failed with statuscode: {code}"))
        }))
    } else if let Some(grpc) = &probe.grpc {
        let port = u16::try_from(grpc.port).map_err(|error| error.to_string())?;
        let service = grpc.service.as_deref().unwrap_or_default();
        Ok(handler::check_grpc(&target.host(None), port, service).await)
    } else if let Some(exec) = &probe.exec {
        let command = exec.command.as_deref().unwrap_or_default();
        let (code, said) = target
            .command(command)
            .await
            .map_err(|error| error.to_string())?;
        Ok(match (code, said.trim()) {
            (0, _) => Ok(()),
            (code, "") => Err(format!("command ended with exit code {code}")),
            (_, said) => Err(said.to_owned()),
        })
    } else {
        Err("missing probe handler".to_owned())
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
