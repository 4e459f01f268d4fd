//! Where a process of a container is started: its environment, folder and user; and how it is
//! connected to whoever talks to it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::terminal::Terminal;
use crate::env::Environment;
use crate::image;
use crate::runtime::{Input, Output, User};

/// What every process of a container has.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) environment: Environment,
    pub(super) folder: PathBuf,
    /// Whom it runs as; nobody else than the node itself unless that is root.
    pub(super) user: User,
}

/// A process and its ends.
pub(super) struct Spawned {
    pub(super) child: Child,
    pub(super) stdin: Option<Input>,
    pub(super) stdout: Option<Output>,
    pub(super) stderr: Option<Output>,
    pub(super) terminal: Option<Terminal>,
}

impl Place {
    /// Starts a program, as the leader of a process group of its own. With a terminal it leads a
    /// session of its own, too, or the keys that interrupt would not.
    pub(super) fn spawn(
        &self,
        program: &Path,
        args: &[String],
        tty: bool,
        stdin: bool,
    ) -> io::Result<Spawned> {
        if tty {
            return self.spawn_at_terminal(program, args, stdin);
        }
        let mut command = self.command(program);
        let given = if stdin { Stdio::piped() } else { Stdio::null() };
        command
            .args(args)
            .stdin(given)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn()?;
        Ok(Spawned {
            stdin: child.stdin.take().map(|pipe| Box::new(pipe) as Input),
            stdout: child.stdout.take().map(|pipe| Box::new(pipe) as Output),
            stderr: child.stderr.take().map(|pipe| Box::new(pipe) as Output),
            child,
            terminal: None,
        })
    }

    fn spawn_at_terminal(
        &self,
        program: &Path,
        args: &[String],
        stdin: bool,
    ) -> io::Result<Spawned> {
        let path = std::env::var("PATH").unwrap_or_default();
        let setsid = image::find("setsid", &path).ok_or_else(|| {
            io::Error::other("a terminal needs the program setsid of the package util-linux")
        })?;
        let (terminal, end) = Terminal::open()?;
        if let Some(uid) = self.user.uid {
            let owner = Some(rustix::fs::Uid::from_raw(uid));
            rustix::fs::fchown(&end, owner, None)?;
        }
        let mut command = self.command(&setsid);
        if self.environment.get("TERM").is_none() {
            command.env("TERM", "xterm");
        }
        // It makes a session, takes the terminal for it, and becomes the program.
        let child = command
            .arg("-c")
            .arg(program)
            .args(args)
            .stdin(end.try_clone()?)
            .stdout(end.try_clone()?)
            .stderr(end)
            .spawn()?;
        Ok(Spawned {
            child,
            stdin: stdin.then(|| terminal.input()).transpose()?,
            stdout: Some(terminal.output()?),
            stderr: None,
            terminal: Some(terminal),
        })
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.environment.iter())
            .current_dir(&self.folder)
            .kill_on_drop(true);
        if let Some(uid) = self.user.uid {
            command.uid(uid);
        }
        if let Some(gid) = self.user.gid.or(self.user.uid) {
            command.gid(gid);
        }
        command
    }
}
