//! Hooks that are programs.

use std::process::Stdio;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use super::transport::Answer;

/// No answer is longer.
pub(super) const LONGEST: u64 = 32 * 1024 * 1024;
/// So much of what a program says about its failure is reported.
const SAID: usize = 1000;

/// Runs a program: the request is its standard input, the answer its standard output. It is killed
/// when the future is dropped.
pub(super) async fn run(program: &[String], request: &[u8]) -> Result<Answer, String> {
    let Some((name, arguments)) = program.split_first() else {
        return Err("no program is named".to_owned());
    };
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut input) = input {
            // One that does not read its input may answer all the same.
            let _ = input.write_all(request).await;
            let _ = input.shutdown().await;
        }
    };
    let read = async {
        let mut answer = Vec::new();
        if let Some(output) = output {
            output.take(LONGEST + 1).read_to_end(&mut answer).await?;
        }
        Ok::<_, std::io::Error>(answer)
    };
    let complain = async {
        let mut said = Vec::new();
        if let Some(errors) = errors {
            errors.take(LONGEST).read_to_end(&mut said).await?;
        }
        Ok::<_, std::io::Error>(said)
    };
    let ((), answer, said) = tokio::join!(write, read, complain);
    let failed = |error: std::io::Error| format!("cannot read what {name} answers: {error}");
    let (answer, said) = (answer.map_err(failed)?, said.map_err(failed)?);
    if answer.len() as u64 > LONGEST {
        return Err(format!(
            "the answer of {name} is longer than {LONGEST} bytes"
        ));
    }
    let status = child.wait().await.map_err(failed)?;
    if !status.success() {
        let said = String::from_utf8_lossy(&said);
        let tail: String = said.trim().chars().take(SAID).collect();
        return Err(format!("{name} failed ({status}): {tail}"));
    }
    Ok(Answer {
        status: 200,
        body: answer,
        ..Answer::default()
    })
}
