//! Hooks: what a container wants done right after its start and right before its end.

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;

use crate::handler::{self, HandlerError, Target};
use crate::runtime::Runtime;

/// How hooks introduce themselves.
const AGENT: &str = "kube-lifecycle/1.36";

/// Why a hook did not do what it is for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    #[error("command '{command}' exited with {code}: {said}")]
    Command {
        command: String,
        code: i32,
        said: String,
    },
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Handler(#[from] HandlerError),
    #[error("invalid handler: it does nothing")]
    Nothing,
}

/// Runs a hook.
pub(crate) async fn run<R: Runtime>(
    hook: &LifecycleHandler,
    target: &Target<R>,
) -> Result<(), HookError> {
    if let Some(exec) = &hook.exec {
        let command = exec.command.as_deref().unwrap_or_default();
        match target.command(command).await? {
            (0, _) => Ok(()),
            (code, said) => Err(HookError::Command {
                command: command.join(" "),
                code,
                said: said.trim().to_owned(),
            }),
        }
    } else if let Some(get) = &hook.http_get {
        // Whatever is answered is an answer.
        handler::get(target, get, AGENT).await?;
        Ok(())
    } else if let Some(sleep) = &hook.sleep {
        let seconds = u64::try_from(sleep.seconds).unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    } else {
        Err(HookError::Nothing)
    }
}
