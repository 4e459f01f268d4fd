//! What the node keeps on disk, so that a later life finds the pods of this one.
//!
//! ```text
//! <state>/oci/                                     the OCI runtime's own state
//! <state>/pods/<uid>/pod.json                      name and address
//! <state>/pods/<uid>/shim.json, shim.sock          the shim, and the way to it
//! <state>/pods/<uid>/etc/                          hosts, hostname and resolv.conf of a sandbox
//! <state>/pods/<uid>/parts/                        where parts of volumes are mounted for a moment
//! <state>/pods/<uid>/containers/<name>/<run>.log   its output, the present run and the one before
//! <state>/pods/<uid>/containers/<name>/<run>.log.1 what was before in that, up to <run>.log.4
//! <state>/pods/<uid>/containers/<name>/<run>/      what the run is made from, while it goes on
//! <state>/pods/<uid>/containers/<name>/work/       where a plain process works
//! ```

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{folder, log};

/// What is remembered of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PodNote {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) host_network: bool,
}

/// The folder of the node.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the folder, and makes it where it is missing. It is nobody else's to list; where
    /// containers that run as somebody else see the machine's own files, they can reach theirs.
    pub(crate) fn open(root: &Path, mode: u32) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(root.join("pods"))?;
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn oci(&self) -> PathBuf {
        self.root.join("oci")
    }

    pub(crate) fn pod(&self, uid: &str) -> PathBuf {
        self.root.join("pods").join(uid)
    }

    /// Where the shim of a pod mounts parts of volumes. Only the shim sees the mounts; nothing there
    /// is ever removed but by the node, who does not.
    pub(crate) fn parts(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("parts")
    }

    pub(crate) fn container(&self, uid: &str, container: &str) -> PathBuf {
        self.pod(uid).join("containers").join(container)
    }

    pub(crate) fn run(&self, uid: &str, container: &str, run: i32) -> PathBuf {
        self.container(uid, container).join(run.to_string())
    }

    pub(crate) fn log(&self, uid: &str, container: &str, run: i32) -> PathBuf {
        self.container(uid, container).join(format!("{run}.log"))
    }

    /// Every pod that is remembered, with its uid.
    pub(crate) fn pods(&self) -> io::Result<Vec<(String, PodNote)>> {
        let mut pods = Vec::new();
        for entry in fs::read_dir(self.root.join("pods"))? {
            let entry = entry?;
            if folder::is_aside(&entry.file_name()) {
                // The node was killed before it was removed.
                let _ = folder::remove_all(&entry.path());
                continue;
            }
            let uid = entry.file_name().to_string_lossy().into_owned();
            // A torn note is none: the node was killed before anything was started.
            let note = fs::read(entry.path().join("pod.json")).ok();
            if let Some(note) = note.and_then(|note| serde_json::from_slice(&note).ok()) {
                pods.push((uid, note));
            }
        }
        pods.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(pods)
    }

    pub(crate) fn remember(&self, uid: &str, note: &PodNote) -> io::Result<()> {
        let folder = self.pod(uid);
        fs::create_dir_all(&folder)?;
        let draft = folder.join("pod.json.draft");
        fs::write(&draft, serde_json::to_vec(note)?)?;
        fs::rename(draft, folder.join("pod.json"))
    }

    /// Takes everything about a pod away from where it was; what is left to do is to remove it.
    pub(crate) fn set_aside(&self, uid: &str) -> io::Result<Option<PathBuf>> {
        folder::set_aside(&self.pod(uid))
    }

    /// The numbers of the runs that have a log, in order.
    pub(crate) fn runs(&self, uid: &str, container: &str) -> Vec<i32> {
        let entries = fs::read_dir(self.container(uid, container));
        let names = entries.into_iter().flatten().flatten();
        let mut runs: Vec<i32> = names
            .filter_map(|entry| {
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".log")?
                    .parse()
                    .ok()
            })
            .collect();
        runs.sort_unstable();
        runs
    }

    /// Removes the logs of runs before the one before `run`.
    pub(crate) fn prune_logs(&self, uid: &str, container: &str, run: i32) {
        for old in self.runs(uid, container) {
            if old < run - 1 {
                log::remove(&self.log(uid, container, old));
            }
        }
    }
}
