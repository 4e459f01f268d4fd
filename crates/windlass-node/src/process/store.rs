//! What the node keeps on disk, so that a later life finds what this one left behind.
//!
//! ```text
//! <state>/pods/<uid>/pod.json                  name and address
//! <state>/pods/<uid>/<container>/process.json  pid and start time while it runs
//! <state>/pods/<uid>/<container>/<run>.log     its output, the present run and the one before
//! <state>/pods/<uid>/<container>/work          its working folder
//! <state>/pods/<uid>/.volumes/<volume>/        its emptyDir volumes
//! ```

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::tree::Leader;

/// What is remembered of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PodNote {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
}

/// The folder of the node.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the folder, and makes it where it is missing. It is nobody else's to list, but a
    /// container that runs as somebody else must be able to reach its own.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(root.join("pods"))?;
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn pod(&self, uid: &str) -> PathBuf {
        self.root.join("pods").join(uid)
    }

    pub(crate) fn container(&self, uid: &str, container: &str) -> PathBuf {
        self.pod(uid).join(container)
    }

    /// Every pod that is remembered, with its uid.
    pub(crate) fn pods(&self) -> io::Result<Vec<(String, PodNote)>> {
        let mut pods = Vec::new();
        for entry in fs::read_dir(self.root.join("pods"))? {
            let entry = entry?;
            let uid = entry.file_name().to_string_lossy().into_owned();
            if let Some(note) = read(&entry.path().join("pod.json"))? {
                pods.push((uid, note));
            }
        }
        pods.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(pods)
    }

    pub(crate) fn remember(&self, uid: &str, note: &PodNote) -> io::Result<()> {
        fs::create_dir_all(self.pod(uid))?;
        write(&self.pod(uid).join("pod.json"), note)
    }

    /// Removes everything about a pod.
    pub(crate) fn forget(&self, uid: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.pod(uid)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) fn started(&self, uid: &str, container: &str, leader: Leader) -> io::Result<()> {
        write(
            &self.container(uid, container).join("process.json"),
            &leader,
        )
    }

    pub(crate) fn ended(&self, uid: &str, container: &str) {
        let _ = fs::remove_file(self.container(uid, container).join("process.json"));
    }

    /// The processes that were running when the node was last heard of.
    pub(crate) fn processes(&self) -> io::Result<Vec<(String, String, Leader)>> {
        let mut processes = Vec::new();
        for (uid, _) in self.pods()? {
            for entry in fs::read_dir(self.pod(&uid))?.flatten() {
                if let Some(leader) = read(&entry.path().join("process.json"))? {
                    let container = entry.file_name().to_string_lossy().into_owned();
                    processes.push((uid.clone(), container, leader));
                }
            }
        }
        processes.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        Ok(processes)
    }

    pub(crate) fn log(&self, uid: &str, container: &str, run: i32) -> PathBuf {
        self.container(uid, container).join(format!("{run}.log"))
    }

    /// The number of the last run that has a log.
    pub(crate) fn last_run(&self, uid: &str, container: &str) -> Option<i32> {
        self.runs(uid, container).into_iter().max()
    }

    /// Removes the logs of runs before the one before `run`.
    pub(crate) fn prune_logs(&self, uid: &str, container: &str, run: i32) {
        for old in self
            .runs(uid, container)
            .into_iter()
            .filter(|old| *old < run - 1)
        {
            let _ = fs::remove_file(self.log(uid, container, old));
        }
    }

    fn runs(&self, uid: &str, container: &str) -> Vec<i32> {
        let Ok(entries) = fs::read_dir(self.container(uid, container)) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| {
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".log")?
                    .parse()
                    .ok()
            })
            .collect()
    }
}

/// Reads a file; a missing or torn one (the node was killed while it wrote) is none.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Writes a file whole: under another name first.
fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let draft = path.with_extension("draft");
    fs::write(&draft, serde_json::to_vec(value)?)?;
    fs::rename(draft, path)
}
