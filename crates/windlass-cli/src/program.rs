//! The operator's own program: built by Cargo from the project, and asked for what it knows.
//!
//! Everything that is derived from the operator value comes from its program, so `windlass
//! manifests` in a project and the program's own `manifests` cannot disagree.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

use crate::error::{Error, Result, at};
use crate::helm;
use crate::interrupt::{Ended, Signals, wait};
use crate::progress::Step;
use crate::project::Project;

/// An operator's program.
pub(crate) struct Program {
    pub(crate) root: PathBuf,
    pub(crate) project: Project,
    pub(crate) path: PathBuf,
    /// What every call of it begins with.
    prefix: Vec<&'static str>,
}

impl Program {
    /// Builds the program of the project that a folder belongs to, as one of Cargo's profiles (`dev`
    /// unless told). Cargo tells how it goes on.
    pub(crate) async fn build(
        folder: &Path,
        profile: Option<&str>,
        signals: &mut Signals,
    ) -> Result<Self> {
        // A project of charts has no code: this program is its operator.
        if helm::is_project(folder) {
            return Self::of_charts(folder);
        }
        let (root, project) = Project::find(folder)?;
        let mut cargo = tokio::process::Command::new("cargo");
        cargo
            .args(["build", "--message-format=json-render-diagnostics", "--bin"])
            .arg(&project.project_name)
            .current_dir(&root)
            .stdout(Stdio::piped());
        if let Some(profile) = profile {
            cargo.args(["--profile", profile]);
        }
        let mut child = cargo.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoToolchain,
            _ => Error::Other(format!("cannot start cargo: {error}")),
        })?;
        let output = child.stdout.take();
        let read = async {
            let mut path = None;
            if let Some(output) = output {
                let mut lines = BufReader::new(output).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    path = executable(&line, &project.project_name).or(path);
                }
            }
            path
        };
        let (path, ended) = tokio::join!(read, wait(&mut child, signals));
        let ended =
            ended.map_err(|error| Error::Other(format!("cannot wait for cargo: {error}")))?;
        if ended.asked {
            return Err(Error::Interrupted("the build was not finished".to_owned()));
        }
        match path {
            Some(path) if ended.status.success() => Ok(Self {
                root,
                project,
                path,
                prefix: Vec::new(),
            }),
            _ => Err(Error::Other(format!(
                "{} does not compile; cargo says above why",
                project.project_name
            ))),
        }
    }

    /// The operator of the charts of a folder.
    fn of_charts(folder: &Path) -> Result<Self> {
        let path = std::env::current_exe()
            .map_err(|error| Error::Other(format!("cannot find this program: {error}")))?;
        let project = Project {
            domain: String::new(),
            layout: String::new(),
            project_name: helm::project_name(folder),
            repo: None,
            resources: Vec::new(),
        };
        Ok(Self {
            root: std::fs::canonicalize(folder).map_err(at(folder))?,
            project,
            path,
            prefix: vec![helm::PROGRAM],
        })
    }

    /// A call of the program, in the project's folder.
    pub(crate) fn command<I: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = I>,
    ) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(&self.prefix)
            .args(arguments)
            .current_dir(&self.root);
        command
    }

    /// Lets the program do something, and prints what it says once it is done.
    pub(crate) async fn obey(&self, task: Task<'_>, signals: &mut Signals) -> Result<()> {
        let (output, ended) = self.call(task.doing, task.arguments, signals).await?;
        // Nobody may be there to read it; that is no failure of what was done.
        let _ = io::stdout().write_all(&output);
        match (ended.status.success(), ended.asked) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::Interrupted(task.left.to_owned())),
            // It has said why.
            (false, false) => Err(Error::Told),
        }
    }

    /// What the program prints. Nothing has happened by then: who wanted it to end is done.
    pub(crate) async fn ask(
        &self,
        arguments: Vec<String>,
        signals: &mut Signals,
    ) -> Result<String> {
        let doing = "asking the operator";
        let (output, ended) = self.call(doing, arguments, signals).await?;
        if ended.asked {
            return Err(Error::Interrupted("nothing was changed".to_owned()));
        }
        if !ended.status.success() {
            return Err(Error::Told);
        }
        String::from_utf8(output)
            .map_err(|_| Error::Other(format!("{} printed no text", self.path.display())))
    }

    /// Calls the program, and passes on what it complains about once it is done; answers what it
    /// printed.
    async fn call(
        &self,
        doing: &str,
        arguments: Vec<String>,
        signals: &mut Signals,
    ) -> Result<(Vec<u8>, Ended)> {
        let step = Step::start(doing);
        let mut child = tokio::process::Command::from(self.command(arguments))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| self.not_started(&error))?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let (output, errors, ended) =
            tokio::join!(text(output), text(errors), wait(&mut child, signals));
        drop(step);
        let _ = io::stderr().write_all(&errors);
        let ended = ended.map_err(|error| self.not_started(&error))?;
        Ok((output, ended))
    }

    fn not_started(&self, error: &io::Error) -> Error {
        Error::Other(format!("cannot run {}: {error}", self.path.display()))
    }
}

/// Something that the program is to do.
pub(crate) struct Task<'a> {
    pub(crate) arguments: Vec<String>,
    /// What is being done, while it takes its time.
    pub(crate) doing: &'a str,
    /// How things are when a person ends it before it is done.
    pub(crate) left: &'a str,
}

/// Everything a child prints.
async fn text(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(mut from) = from {
        let _ = from.read_to_end(&mut text).await;
    }
    text
}

/// The program of that name, when a line of Cargo's says where it is.
fn executable(line: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_ours = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
    if !is_ours {
        return None;
    }
    message["executable"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_what_cargo_says() {
        let line = r#"{"reason":"compiler-artifact","target":{"name":"x"},"executable":"/t/x"}"#;
        assert_eq!(executable(line, "x"), Some(PathBuf::from("/t/x")));
        assert_eq!(executable(line, "y"), None);
        assert_eq!(executable("no json", "x"), None);
        let library = r#"{"reason":"compiler-artifact","target":{"name":"x"},"executable":null}"#;
        assert_eq!(executable(library, "x"), None);
    }
}
