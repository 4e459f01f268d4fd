//! Where a process of a container is started: its environment, folder and user; and how it is
//! connected to whoever talks to it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};

use crate::env::Environment;
use crate::image;
use crate::runtime::{Input, Output, User};
use crate::shim::Ends;
use crate::terminal::Terminal;

/// What every process of a container has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) environment: Environment,
    pub(crate) folder: PathBuf,
    /// Whom it runs as; nobody else than the node itself unless that is root.
    pub(crate) user: User,
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
    ) -> io::Result<(Child, Ends)> {
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
        let ends = Ends {
            stdin: child.stdin.take().map(|pipe| Box::new(pipe) as Input),
            stdout: child.stdout.take().map(|pipe| Box::new(pipe) as Output),
            stderr: child.stderr.take().map(|pipe| Box::new(pipe) as Output),
            terminal: None,
        };
        Ok((child, ends))
    }

    fn spawn_at_terminal(
        &self,
        program: &Path,
        args: &[String],
        stdin: bool,
    ) -> io::Result<(Child, Ends)> {
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
        Ok((child, Ends::at(terminal, stdin)?))
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
