//! An operator as a process: started with a kubeconfig of its own, killed without a warning, and
//! watched for whether it is at work.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::subject::Template;

/// How much of what it prints is looked at.
const TAIL: u64 = 4_000;
/// How many lines of that are shown.
const LINES: usize = 12;

pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    /// Where what this life printed begins.
    log_from: u64,
    ticks: u64,
}

/// The ports of one run, by placeholder: the same in each life of the operator.
#[derive(Default)]
pub(crate) struct Ports(BTreeMap<String, u16>);

impl Ports {
    /// Replaces `{port}`, `{port2}` … in a text.
    fn fill(&mut self, text: &str) -> io::Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("{port") {
            let Some(end) = rest[at..].find('}') else {
                break;
            };
            let placeholder = &rest[at..=at + end];
            let port = if let Some(port) = self.0.get(placeholder) {
                *port
            } else {
                let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
                self.0.insert(placeholder.to_owned(), port);
                port
            };
            out.push_str(&rest[..at]);
            out.push_str(&port.to_string());
            rest = &rest[at + end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

impl Process {
    pub(crate) fn start(
        template: &Template,
        folder: &Path,
        kubeconfig: &Path,
        ports: &mut Ports,
    ) -> io::Result<Self> {
        let texts = template.words.iter();
        let texts = texts.chain(template.env.iter().map(|(_, value)| value));
        for text in texts {
            ports.fill(text)?;
        }
        let ports = &*ports;
        let replace = |text: &str| {
            let mut text = text
                .replace("{kubeconfig}", &kubeconfig.display().to_string())
                .replace("{dir}", &folder.display().to_string());
            for (placeholder, port) in &ports.0 {
                text = text.replace(placeholder, &port.to_string());
            }
            text
        };
        let words = template.filled(replace);
        let log = folder.join("operator.log");
        let output = File::options().create(true).append(true).open(&log)?;
        let log_from = output.metadata()?.len();
        let Some((program, arguments)) = words.split_first() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no program is named",
            ));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&template.folder)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .kill_on_drop(true);
        for (name, value) in &template.env {
            command.env(name, replace(value));
        }
        Ok(Self {
            child: command.spawn()?,
            log,
            log_from,
            ticks: 0,
        })
    }

    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let printed = self.printed();
        let lines: Vec<&str> = printed.lines().collect();
        // What led to the end of a panic is above a stack of calls.
        let is_panic = |line: &&&str| {
            ["panic:", "panicked at", "Traceback"]
                .iter()
                .any(|text| line.contains(text))
        };
        let from = lines.iter().rposition(|line| is_panic(&line));
        let from = from.unwrap_or(lines.len().saturating_sub(LINES));
        let tail = lines[from..].iter().take(LINES).copied();
        let tail: Vec<&str> = tail.collect();
        Some(format!("ended with {status}\n{}", tail.join("\n")))
    }

    /// The end of what this life has printed.
    fn printed(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(&self.log)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(
                self.log_from.max(length.saturating_sub(TAIL)),
            ))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_default()
    }

    pub(crate) async fn kill(&mut self) {
        // With all its children: it leads a group of its own, which lives at least until it is waited for.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.kill().await;
    }

    /// Stops it where it is, with its requests under way.
    pub(crate) fn stop(&mut self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::STOP);
        }
    }

    /// Whether it has used a processor since this was asked last, or waits for one.
    pub(crate) fn is_busy(&mut self) -> bool {
        let Some(pid) = self.child.id() else {
            return false;
        };
        let ticks = ticks(pid);
        let used = std::mem::replace(&mut self.ticks, ticks) != ticks;
        used || is_runnable(pid)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// How much time a process and its children have used so far.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program is in parentheses, and may hold anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let used: u64 = rest
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_ascii_whitespace()
        .filter_map(|child| child.parse().ok());
    used + children.map(ticks).sum::<u64>()
}

/// Whether one of its threads waits for a processor, or has one.
fn is_runnable(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().filter_map(Result::ok);
    let states = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let mut states = states.map(|stat| {
        let rest = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.starts_with('R'));
        rest.unwrap_or_default()
    });
    states.any(|runs| runs)
}
