//! The processes of a container, and how to end all of them.
//!
//! A container's processes are found by two marks: the process group of the first one, and the
//! variable that every process of the container inherits. A process can lose one of them
//! (`setsid`, `env -i`), hardly both. The shim of the pod looks among the processes below it, where
//! all of them are; who comes after a shim that is gone looks at every process of the machine.
//! Signals go through a pidfd that is opened before the marks are read a second time, so that a
//! process number used anew is never hit.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The variable that marks the processes of one container.
pub(crate) const CONTAINER_MARK: &str = "WINDLASS_CONTAINER";
/// The variable that marks the processes of one pod.
pub(crate) const POD_MARK: &str = "WINDLASS_POD";
/// The variable that marks the processes of one node.
pub(crate) const NODE_MARK: &str = "WINDLASS_NODE";

/// The first process of a container, told apart from later users of its number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leader {
    pub(crate) pid: i32,
    /// In clock ticks since the machine was started.
    pub(crate) start: u64,
}

/// What `/proc/<pid>/stat` says, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: i32,
    group: i32,
    start: u64,
    dead: bool,
}

/// Marks to find processes by.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    /// `NAME=value` as it stands in the environment.
    variable: String,
    leader: Option<Leader>,
    /// Whose descendants are looked at; those of the whole machine otherwise.
    below: Option<i32>,
}

impl Leader {
    /// The leader with this number, as it is now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        stat(pid).map(|stat| Self {
            pid,
            start: stat.start,
        })
    }

    /// The same, if it still runs.
    pub(crate) fn alive(pid: i32) -> Option<Self> {
        stat(pid).filter(|stat| !stat.dead).map(|stat| Self {
            pid,
            start: stat.start,
        })
    }
}

impl Marks {
    pub(crate) fn new(name: &str, value: &str, leader: Option<Leader>) -> Self {
        Self {
            variable: format!("{name}={value}"),
            leader,
            below: None,
        }
    }

    /// Looks only below a process that gets whatever its descendants leave behind.
    pub(crate) fn below(self, pid: i32) -> Self {
        Self {
            below: Some(pid),
            ..self
        }
    }

    /// The living processes that carry a mark.
    pub(crate) fn find(&self) -> Vec<i32> {
        let mut found = self.below.map_or_else(all, descendants);
        found.retain(|pid| self.are_on(*pid));
        found.sort_unstable();
        found
    }

    fn are_on(&self, pid: i32) -> bool {
        let Some(stat) = stat(pid).filter(|stat| !stat.dead) else {
            return false;
        };
        let by_leader = self.leader.is_some_and(|leader| {
            // While a group has members its number is not given away; a leader that started at
            // another time means that this is another group.
            let same = Leader::of(leader.pid).is_none_or(|now| now == leader);
            same && stat.group == leader.pid
        });
        by_leader || self.are_in_environment_of(pid)
    }

    fn are_in_environment_of(&self, pid: i32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == self.variable.as_bytes())
    }

    /// Sends a signal to every process that carries a mark; returns how many there were.
    pub(crate) fn signal(&self, signal: Signal) -> usize {
        let found = self.find();
        for pid in &found {
            send(*pid, signal, || self.are_on(*pid));
        }
        found.len()
    }

    /// Kills every process that carries a mark, also those that appear meanwhile.
    pub(crate) async fn kill(&self) {
        for _ in 0..200 {
            if self.signal(Signal::KILL) == 0 {
                return;
            }
            // The kernel needs a moment to take a killed process away.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tracing::warn!(
            mark = self.variable,
            "processes that cannot be killed are left behind"
        );
    }
}

/// The processes of the machine.
pub(crate) fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The parent of a process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    stat(pid).map(|stat| stat.parent)
}

/// The children of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let lists: Option<Vec<String>> = tasks
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("children")).ok())
        .collect();
    match lists {
        Some(lists) => lists
            .iter()
            .flat_map(|list| list.split_whitespace())
            .filter_map(|pid| pid.parse().ok())
            .collect(),
        // Not every kernel tells; every process says whose child it is.
        None => all()
            .into_iter()
            .filter(|child| parent(*child) == Some(pid))
            .collect(),
    }
}

/// The processes below a process.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        for child in children(*pid) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Sends a signal to a process.
pub(crate) fn send_to(leader: Leader, signal: Signal) {
    send(leader.pid, signal, || {
        Leader::of(leader.pid) == Some(leader)
    });
}

/// Sends a signal to a process if it still is the one that is meant.
fn send(pid: i32, signal: Signal, is_meant: impl Fn() -> bool) {
    let Some(pid) = Pid::from_raw(pid) else {
        return;
    };
    if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
        && is_meant()
        && let Err(error) = pidfd_send_signal(&process, signal)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(%error, pid = pid.as_raw_pid(), "cannot send a signal");
    }
}

fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of the program stands in parentheses and may hold anything, so fields are counted
/// from the last parenthesis: state, parent, group, …, start as the twentieth.
fn parse(stat: &str) -> Option<Stat> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let line = "12 (a) (b c) S 1 77 12 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        assert_eq!(
            parse(line),
            Some(Stat {
                parent: 1,
                group: 77,
                start: 4711,
                dead: false
            })
        );
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn a_child_is_below_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("sleep runs");
        let pid = i32::try_from(child.id()).expect("a pid");
        let own = i32::try_from(std::process::id()).expect("a pid");
        assert_eq!(parent(pid), Some(own));
        assert!(children(own).contains(&pid) && descendants(own).contains(&pid));
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(!children(own).contains(&pid));
    }

    #[test]
    fn this_process_is_itself() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let leader = Leader::of(pid).expect("this process");
        assert!(
            !Marks::new("NO_SUCH_VARIABLE", "x", None)
                .find()
                .contains(&pid)
        );
        let later = Leader {
            start: leader.start + 1,
            ..leader
        };
        assert!(
            !Marks::new("NO_SUCH_VARIABLE", "x", Some(later))
                .find()
                .contains(&pid)
        );
    }
}
