//! Hooks: what a container wants done right after its start and right before its end.

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;

use crate::handler::{self, Target};
use crate::runtime::Runtime;

/// How hooks introduce themselves.
const AGENT: &str = "kube-lifecycle/1.36";

/// Runs a hook; the error says what went wrong.
pub(crate) async fn run<R: Runtime>(
    hook: &LifecycleHandler,
    target: &Target<R>,
) -> Result<(), String> {
    if let Some(exec) = &hook.exec {
        let command = exec.command.as_deref().unwrap_or_default();
        match target.command(command).await {
            Ok((0, _)) => Ok(()),
            Ok((code, said)) => Err(format!(
                "command '{}' exited with {code}: {}",
                command.join(" "),
                said.trim()
            )),
            Err(error) => Err(error.to_string()),
        }
    } else if let Some(get) = &hook.http_get {
        // Whatever is answered is an answer.
        handler::get(target, get, AGENT).await.map(|_| ())
    } else if let Some(sleep) = &hook.sleep {
        let seconds = u64::try_from(sleep.seconds).unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    } else {
        Err("invalid handler: it does nothing".to_owned())
    }
}
