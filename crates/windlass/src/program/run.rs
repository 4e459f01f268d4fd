//! `run`: the operator as a process.

use kube::Client;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

use crate::{Environment, Error, Operator, Result};

/// Runs until SIGTERM or SIGINT, then stops gracefully; a second signal ends it at once.
pub(super) async fn run(operator: &Operator) -> Result<()> {
    let listen = |kind| signal(kind).map_err(Error::other);
    let mut terminate: Signal = listen(SignalKind::terminate())?;
    let mut interrupt: Signal = listen(SignalKind::interrupt())?;
    let client = Client::try_default().await?;
    let running = operator.start(client, Environment::default());
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("stopping; a second signal ends it at once");
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = running.stop() => {}
    }
    Ok(())
}
