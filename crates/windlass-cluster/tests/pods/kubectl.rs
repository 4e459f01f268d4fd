//! kubectl, as people use it.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::stage::Stage;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// One kubectl, and the cluster it talks to.
pub(crate) struct Kubectl {
    program: PathBuf,
    config: PathBuf,
}

/// Every kubectl that is there; at least one must be.
pub(crate) fn kubectls(stage: &Stage) -> Vec<Kubectl> {
    let config = stage.folder.join("kubeconfig");
    let text = serde_json::to_string(stage.cluster().kubeconfig()).expect("a kubeconfig");
    std::fs::write(&config, text).expect("a file");
    let found: Vec<Kubectl> = ["KUBECTL", "KUBECTL_OLD"]
        .into_iter()
        .filter_map(std::env::var_os)
        .filter(|program| !program.is_empty())
        .map(|program| Kubectl {
            program: program.into(),
            config: config.clone(),
        })
        .collect();
    assert!(
        !found.is_empty(),
        "set KUBECTL to kubectl 1.37 or KUBECTL_OLD to kubectl 1.32: scripts/test does"
    );
    found
}

impl Kubectl {
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.config)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, args: &[&str]) -> (i32, String, String) {
        told(self.command(args).output()).await
    }

    /// With something to read.
    pub(crate) async fn fed(&self, args: &[&str], input: &[u8]) -> (i32, String, String) {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .spawn()
            .expect("kubectl");
        let mut stdin = child.stdin.take().expect("an input");
        stdin.write_all(input).await.expect("an input");
        drop(stdin);
        told(child.wait_with_output()).await
    }

    /// At a terminal of 100 columns and 40 rows.
    pub(crate) async fn at_terminal(&self, rest: &str) -> (i32, String, String) {
        let line = format!(
            "stty rows 40 cols 100; {} --kubeconfig {} {rest}",
            self.program.display(),
            self.config.display()
        );
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the program script");
        // Held open: the end of its input would be the end of the terminal.
        let stdin = child.stdin.take();
        let output = told(child.wait_with_output()).await;
        drop(stdin);
        output
    }
}

async fn told(output: impl Future<Output = std::io::Result<Output>>) -> (i32, String, String) {
    let output = tokio::time::timeout(PATIENCE, output).await;
    let output = output.expect("an end in time").expect("an end");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}
