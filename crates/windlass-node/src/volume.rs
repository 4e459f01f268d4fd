//! Volumes: what a pod's containers find at the paths they mount.
//!
//! Every volume is a folder (or a file) of the machine that is prepared before a container starts,
//! below `<state>/volumes/<uid>/<volume>` unless it lies elsewhere (a hostPath, a
//! PersistentVolume). A runtime only has to show it at the path. In three steps:
//!
//! 1. `content` says what a volume holds, from the pod and the objects it refers to; it is pure.
//! 2. `files` makes it so. Files from ConfigMaps, Secrets and the pod itself are changed all at
//!    once: they are links into a folder `..data`, itself a link that is replaced when all is
//!    written, so that a program never sees a half of the change.
//! 3. `mount` resolves `subPath` and `subPathExpr`, which may not lead out of the volume.
//!
//! The token of a projected volume (`token`) is asked for and refreshed by the pod's worker.

mod content;
mod files;
mod mount;
mod token;

pub(crate) use content::Given;
pub(crate) use token::{Token, Wish, wishes};

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

use crate::env::{Environment, claim_of};
use crate::runtime::Mount;
use content::Content;

/// Where the messages of containers are, among the volumes of a pod.
const MESSAGES: &str = ".messages";

/// Why a volume cannot be had (yet).
#[derive(Debug, thiserror::Error)]
pub(crate) enum VolumeError {
    /// An object it is made from does not exist.
    #[error("{kind} \"{name}\" not found")]
    NotFound { kind: &'static str, name: String },
    /// An object it is made from lacks a key.
    #[error("{kind} references non-existent {what} key: {key}")]
    NoSuchKey {
        kind: &'static str,
        what: &'static str,
        key: String,
    },
    /// A claim that waits for its volume.
    #[error("persistentvolumeclaim \"{0}\" is not bound")]
    Unbound(String),
    /// Something about the pod itself that it cannot be told.
    #[error(transparent)]
    Downward(#[from] crate::env::DownwardError),
    /// A path of the machine that is not what it should be.
    #[error("hostPath type check failed: {path} is not a {wanted}")]
    HostPath { path: String, wanted: &'static str },
    /// A volume that leads out of itself.
    #[error("subPath \"{0}\" leads out of the volume")]
    Outside(String),
    /// A variable of a `subPathExpr` that the container does not have.
    #[error("missing value for a variable of subPathExpr \"{0}\"")]
    MissingVariable(String),
    /// A kind of volume that no node of this machine knows.
    #[error("this kind of volume is not supported by this node")]
    Unsupported,
    /// The token could not be had.
    #[error("failed to fetch token: {0}")]
    Token(String),
    /// The machine refused.
    #[error("cannot {verb} {path}: {source}")]
    Io {
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl VolumeError {
    fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { verb, path, source }
    }
}

/// The volumes of the pods of a node. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Volumes {
    root: PathBuf,
    /// The folders of the claims in use, by the uid of the pod that uses them.
    claimed: Arc<Mutex<BTreeMap<String, BTreeSet<PathBuf>>>>,
}

/// The volumes of one pod that are ready, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ready(BTreeMap<String, PathBuf>);

impl Volumes {
    /// Volumes below the node's folder.
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            root: state_dir.join("volumes"),
            claimed: Arc::default(),
        }
    }

    /// Makes every volume of a pod what it should be. The error comes with the volume's name.
    pub(crate) fn prepare(&self, given: &Given<'_>) -> Result<Ready, (String, VolumeError)> {
        let mut ready = Ready::default();
        for volume in volumes(given.pod()) {
            let source = self
                .prepare_one(volume, given)
                .map_err(|error| (volume.name.clone(), error))?;
            ready.0.insert(volume.name.clone(), source);
        }
        Ok(ready)
    }

    /// Brings the files of volumes that exist up to date; what cannot be had stays as it is.
    pub(crate) fn refresh(&self, given: &Given<'_>) {
        for volume in volumes(given.pod()) {
            let path = self.path(given.pod(), &volume.name);
            if let Ok(Content::Files(wanted)) = content::content(volume, given)
                && path.is_dir()
                && let Err(error) = files::update(&path, &wanted)
            {
                tracing::warn!(%error, volume = volume.name, "cannot bring a volume up to date");
            }
        }
    }

    fn prepare_one(&self, volume: &Volume, given: &Given<'_>) -> Result<PathBuf, VolumeError> {
        let path = self.path(given.pod(), &volume.name);
        match content::content(volume, given)? {
            Content::Empty { group } => {
                if !path.is_dir() {
                    self.make_folder(given.pod())?;
                    files::make_shared_folder(&path, group)?;
                }
                Ok(path)
            }
            Content::Files(wanted) => {
                self.make_folder(given.pod())?;
                files::make_folder(&path)?;
                files::update(&path, &wanted)?;
                Ok(path)
            }
            Content::Host { path, kind } => {
                let path = files::host(path, kind)?;
                if claim_of(given.pod(), volume).is_some() {
                    let mut claimed = self.claimed();
                    let of_pod = claimed.entry(uid(given.pod()).to_owned()).or_default();
                    of_pod.insert(path.clone());
                }
                Ok(path)
            }
        }
    }

    /// Removes what the pod's own volumes hold, as a broken disk does: a fault for tests.
    pub(crate) fn lose(&self, pod: &Pod) -> io::Result<()> {
        for volume in volumes(pod) {
            let path = self.path(pod, &volume.name);
            if volume.empty_dir.is_some() && path.is_dir() {
                files::clear(&path)?;
            }
        }
        let claimed = self.claimed().get(uid(pod)).cloned();
        for path in claimed.unwrap_or_default() {
            files::clear(&path)?;
        }
        Ok(())
    }

    fn claimed(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<PathBuf>>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a container mounts, parents before what lies below them.
    pub(crate) fn mounts(
        &self,
        pod: &Pod,
        container: &Container,
        run: i32,
        environment: &Environment,
        ready: &Ready,
    ) -> Result<Vec<Mount>, VolumeError> {
        let mut mounts = mount::mounts(container, environment, &ready.0)?;
        let message = self.message(pod, &container.name, run);
        self.make_folder(pod)?;
        if let Some(folder) = message.parent() {
            files::make_folder(folder)?;
        }
        fs::write(&message, "").map_err(VolumeError::io("write", &message))?;
        let _ = fs::set_permissions(&message, fs::Permissions::from_mode(0o666));
        mounts.push(Mount {
            name: mount::MESSAGE.to_owned(),
            source: message,
            path: container
                .termination_message_path
                .clone()
                .unwrap_or_else(|| "/dev/termination-log".to_owned()),
            read_only: false,
        });
        mounts.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(mounts)
    }

    /// What a container that ended has left as its last message, no more than `limit` bytes.
    pub(crate) fn last_message(
        &self,
        pod: &Pod,
        container: &str,
        run: i32,
        limit: usize,
    ) -> Option<String> {
        let file = self.message(pod, container, run);
        let bytes = fs::read(&file).ok();
        let _ = fs::remove_file(file);
        let bytes = bytes.filter(|bytes| !bytes.is_empty())?;
        let end = bytes.len().saturating_sub(limit);
        Some(String::from_utf8_lossy(&bytes[end..]).into_owned())
    }

    /// Removes everything of a pod.
    pub(crate) fn forget(&self, uid: &str) {
        self.claimed().remove(uid);
        match fs::remove_dir_all(self.root.join(uid)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, uid, "cannot remove the volumes of a pod");
            }
            _ => {}
        }
    }

    /// The uids of pods that have volumes.
    pub(crate) fn known(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut known: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        known.sort();
        known
    }

    /// The folder of a pod: not to be listed by others, but its users may be anybody.
    fn make_folder(&self, pod: &Pod) -> Result<(), VolumeError> {
        let folder = self.root.join(uid(pod));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(&folder)
            .map_err(VolumeError::io("make", &folder))
    }

    fn path(&self, pod: &Pod, volume: &str) -> PathBuf {
        self.root.join(uid(pod)).join(volume)
    }

    fn message(&self, pod: &Pod, container: &str, run: i32) -> PathBuf {
        let folder = self.root.join(uid(pod)).join(MESSAGES);
        folder.join(format!("{container}-{run}"))
    }
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn volumes(pod: &Pod) -> &[Volume] {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.volumes.as_deref())
        .unwrap_or_default()
}

/// Whether a mount is the file of the container's last message.
pub(crate) fn is_message(mount: &Mount) -> bool {
    mount.name == mount::MESSAGE
}

#[cfg(test)]
mod tests;
