//! Volumes: what a pod's containers find at the paths they mount.
//!
//! Every volume is a folder (or a file) of the machine that is prepared before a container starts,
//! below `<state>/volumes/<uid>/<volume>` unless it lies elsewhere (a hostPath, a
//! PersistentVolume). A runtime only has to show it at the path. In three steps:
//!
//! 1. `content` says what a volume holds, from the pod and the objects it refers to; it is pure.
//! 2. `files` makes it so. Files from ConfigMaps, Secrets and the pod itself are changed all at
//!    once: they are links into a folder `..data`, itself a link that is replaced when all is
//!    written, so that a program never sees a half of the change. Such a volume is mounted read-only
//!    whatever the pod says, as kubelet does.
//! 3. `mount` resolves `subPath` and `subPathExpr`, which may not lead out of the volume.
//!
//! A container may have put anything anywhere in a volume that it can write to, so the node works
//! there by open folders ([`crate::folder`]), and believes no link.
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
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

use crate::env::{Environment, claim_of};
use crate::folder::{self, Folder};
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
pub(crate) struct Ready(BTreeMap<String, Source>);

/// Where a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    path: PathBuf,
    /// Whether no container may write to it.
    read_only: bool,
}

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
        let Ok(pod) = self.folder(given.pod()) else {
            return;
        };
        for volume in volumes(given.pod()) {
            if let Ok(Content::Files(wanted)) = content::content(volume, given)
                && let Ok(folder) = pod.folder(&volume.name)
                && let Err(error) = files::update(&folder, &wanted)
            {
                tracing::warn!(%error, volume = volume.name, "cannot bring a volume up to date");
            }
        }
    }

    fn prepare_one(&self, volume: &Volume, given: &Given<'_>) -> Result<Source, VolumeError> {
        let source = |path: PathBuf, read_only: bool| Source { path, read_only };
        match content::content(volume, given)? {
            Content::Empty { group } => {
                let pod = self.make_folder(given.pod())?;
                let folder = files::shared_folder(&pod, &volume.name, group)?;
                Ok(source(folder.path().to_owned(), false))
            }
            Content::Files(wanted) => {
                let pod = self.make_folder(given.pod())?;
                let folder = files::own_folder(&pod, &volume.name)?;
                files::update(&folder, &wanted)?;
                Ok(source(folder.path().to_owned(), true))
            }
            Content::Host { path, kind } => {
                let path = files::host(path, kind)?;
                if claim_of(given.pod(), volume).is_some() {
                    let mut claimed = self.claimed();
                    let of_pod = claimed.entry(uid(given.pod()).to_owned()).or_default();
                    of_pod.insert(path.clone());
                }
                let claim = volume.persistent_volume_claim.as_ref();
                let read_only = claim.and_then(|claim| claim.read_only) == Some(true);
                Ok(source(path, read_only))
            }
        }
    }

    /// Removes what the pod's own volumes hold, as a broken disk does: a fault for tests.
    pub(crate) fn lose(&self, pod: &Pod) -> io::Result<()> {
        let own = volumes(pod).iter().filter(|v| v.empty_dir.is_some());
        for volume in own {
            match self.folder(pod).and_then(|pod| pod.folder(&volume.name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                folder => folder?.clear()?,
            }
        }
        let claimed = self.claimed().get(uid(pod)).cloned();
        for path in claimed.unwrap_or_default() {
            Folder::named(&path)?.clear()?;
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
        let messages = files::own_folder(&self.make_folder(pod)?, MESSAGES)?;
        let name = message(&container.name, run);
        let made = messages
            .remove(&name)
            .and_then(|()| messages.create(&name, 0o600))
            .and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o666)));
        made.map_err(files::failed("make", &messages, &name))?;
        mounts.push(Mount {
            name: mount::MESSAGE.to_owned(),
            source: messages.path().join(name),
            part: None,
            path: container
                .termination_message_path
                .clone()
                .unwrap_or_else(|| "/dev/termination-log".to_owned()),
            read_only: false,
        });
        mounts.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(mounts)
    }

    /// What a container that ended has left as its last message: the end of it, no more than `limit`
    /// bytes, however large the file is.
    pub(crate) fn last_message(
        &self,
        pod: &Pod,
        container: &str,
        run: i32,
        limit: u64,
    ) -> Option<String> {
        let messages = self.folder(pod).ok()?.folder(MESSAGES).ok()?;
        let name = message(container, run);
        let bytes = messages.file(&name).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
            let mut bytes = Vec::new();
            file.take(limit).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        let _ = messages.remove(&name);
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty())?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Removes everything of a pod.
    pub(crate) fn forget(&self, uid: &str) {
        if let Some(aside) = self.set_aside(uid)
            && let Err(error) = folder::remove_all(&aside)
        {
            tracing::warn!(%error, uid, "cannot remove the volumes of a pod");
        }
    }

    /// Takes everything of a pod away from where it was; what is left to do is to remove it.
    pub(crate) fn set_aside(&self, uid: &str) -> Option<PathBuf> {
        self.claimed().remove(uid);
        folder::set_aside(&self.root.join(uid)).unwrap_or_else(|error| {
            tracing::warn!(%error, uid, "cannot set the volumes of a pod aside");
            None
        })
    }

    /// The uids of pods that have volumes, and what was to be removed when the node was killed.
    pub(crate) fn known(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut known: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        known.sort();
        known
    }

    /// The folder of a pod, made where it is missing: not to be listed by others, but entered
    /// by any user.
    fn make_folder(&self, pod: &Pod) -> Result<Folder, VolumeError> {
        let make = || {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o711).create(&self.root)?;
            Folder::open(&self.root)?.make(uid(pod), 0o711)
        };
        make().map_err(VolumeError::io("make", &self.root.join(uid(pod))))
    }

    fn folder(&self, pod: &Pod) -> io::Result<Folder> {
        Folder::open(&self.root)?.folder(uid(pod))
    }
}

/// The name of the file for the message of a run.
fn message(container: &str, run: i32) -> String {
    format!("{container}-{run}")
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
