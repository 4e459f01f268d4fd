//! What the node keeps on disk, so that a later life finds the pods of this one.
//!
//! ```text
//! <state>/oci/                                     the OCI runtime's own state
//! <state>/pods/<uid>/pod.json                      name and address
//! <state>/pods/<uid>/shim.json, shim.sock          the shim, and the way to it
//! <state>/pods/<uid>/etc/                          hosts, hostname and resolv.conf
//! <state>/pods/<uid>/containers/<name>/<run>.log   its output, the present run and the one before
//! <state>/pods/<uid>/containers/<name>/<run>/      its description and its writable layer
//! ```

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What is remembered of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PodNote {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) address: Ipv4Addr,
    pub(super) host_network: bool,
}

/// The folder of the node.
#[derive(Debug, Clone)]
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the folder, and makes it where it is missing. It is nobody else's to read.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root.join("pods"))?;
        let root = root.canonicalize()?;
        fs::create_dir_all(root.join("oci"))?;
        Ok(Self { root })
    }

    pub(super) fn oci(&self) -> PathBuf {
        self.root.join("oci")
    }

    pub(super) fn pod(&self, uid: &str) -> PathBuf {
        self.root.join("pods").join(uid)
    }

    pub(super) fn container(&self, uid: &str, container: &str) -> PathBuf {
        self.pod(uid).join("containers").join(container)
    }

    pub(super) fn bundle(&self, uid: &str, container: &str, run: i32) -> PathBuf {
        self.container(uid, container).join(run.to_string())
    }

    pub(super) fn log(&self, uid: &str, container: &str, run: i32) -> PathBuf {
        self.container(uid, container).join(format!("{run}.log"))
    }

    /// Every pod that is remembered, with its uid.
    pub(super) fn pods(&self) -> io::Result<Vec<(String, PodNote)>> {
        let mut pods = Vec::new();
        for entry in fs::read_dir(self.root.join("pods"))? {
            let entry = entry?;
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

    pub(super) fn remember(&self, uid: &str, note: &PodNote) -> io::Result<()> {
        let folder = self.pod(uid);
        fs::create_dir_all(&folder)?;
        let draft = folder.join("pod.json.draft");
        fs::write(&draft, serde_json::to_vec(note)?)?;
        fs::rename(draft, folder.join("pod.json"))
    }

    /// Removes everything about a pod.
    pub(super) fn forget(&self, uid: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.pod(uid)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The numbers of the runs that have a log, in order.
    pub(super) fn runs(&self, uid: &str, container: &str) -> Vec<i32> {
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
    pub(super) fn prune_logs(&self, uid: &str, container: &str, run: i32) {
        for old in self.runs(uid, container) {
            if old < run - 1 {
                let _ = fs::remove_file(self.log(uid, container, old));
            }
        }
    }
}
