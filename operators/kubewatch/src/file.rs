//! The configuration in a file and in environment variables, as kubewatch reads them.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::{error, info};
use windlass::Result;
use windlass::run::TaskContext;

use crate::config::WatchSpec;
use crate::engine::{Engine, Plan};
use crate::progress::Place;
use crate::report::Report;
use crate::transport::Transport;

const FILE: &str = ".kubewatch.yaml";
/// Where progress is kept.
const PROGRESS: &str = "kubewatch-file";

/// Reads the content of a configuration file.
pub fn read(text: &str) -> std::result::Result<WatchSpec, serde_saphyr::Error> {
    match text.trim() {
        "" => Ok(WatchSpec::default()),
        text => serde_saphyr::from_str(text),
    }
}

/// Runs what the file and the environment say; done at once if they say nothing.
pub(crate) async fn run(context: TaskContext, transport: Arc<dyn Transport>) -> Result<()> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let folder = variable("KW_CONFIG").or_else(|| variable("HOME"));
    let file = PathBuf::from(folder.unwrap_or_default()).join(FILE);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(windlass::Error::other(format!(
                "cannot read {FILE}: {error}"
            )));
        }
    };
    let config = read(&text).map_err(|error| {
        let place = error.to_string();
        windlass::Error::other(format!("cannot read {}: {place}", file.display()))
    })?;
    let config = config.with_variables(&variable);
    if config.handler == WatchSpec::default().handler {
        return Ok(());
    }
    info!(file = %file.display(), "watching what the file asks for");
    run_config(context, config, transport).await
}

/// Runs a configuration until the operator stops.
pub(crate) async fn run_config(
    context: TaskContext,
    config: WatchSpec,
    transport: Arc<dyn Transport>,
) -> Result<()> {
    let plan = Plan::of(Arc::new(config));
    let plan = plan.map_err(|error| windlass::Error::other(error.to_string()))?;
    let report = Arc::new(Report::new(plan.handlers(), || {}));
    let namespace = context.client.default_namespace().to_owned();
    let engine = Engine {
        plan,
        place: Place {
            client: context.client.clone(),
            namespace,
            name: PROGRESS.to_owned(),
            owner: None,
        },
        client: context.client,
        environment: context.environment,
        transport,
        report: Arc::clone(&report),
    };
    tokio::select! {
        () = context.stopping.cancelled() => {}
        () = engine.run() => {}
    }
    let dropped = report.dropped_so_far();
    if dropped > 0 {
        error!(dropped, why = report.why(), "messages were given up");
    }
    Ok(())
}
