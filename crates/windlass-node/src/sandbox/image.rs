//! Real images, where there are any: OCI layouts and archives in the image folder.
//!
//! An image is found by the name that its layout gives it
//! (`org.opencontainers.image.ref.name`, or the full name that containerd's tools write), by its
//! digest, or both, and unpacked once into the node's folder, layer by layer. Its file system is then
//! what a container's root is an overlay of, instead of the machine's own.
//!
//! Images come from anywhere, and are unpacked by root: what `layer` says about links, and `digest`
//! about content, is what keeps them from being more than files in a folder.

mod archive;
mod digest;
mod error;
mod layer;
mod layout;
mod packed;

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use super::FOLDERS;
use crate::folder::{self, Folder};
use crate::program::Program;
use crate::runtime::Launch;
use digest::Digest;
pub(super) use error::UnpackError;
use layer::Layer;
use layout::{Descriptor, ImageFile, Index, Layout, Manifest};
use packed::{Limits, Room};

const NAMES: [&str; 2] = [
    "io.containerd.image.name",
    "org.opencontainers.image.ref.name",
];

/// No image is larger than this, or has more files.
const LIMITS: Limits = Limits {
    bytes: 64 * 1024 * 1024 * 1024,
    entries: 4_000_000,
};
/// No list of users is longer.
const LONGEST_LIST: u64 = 1024 * 1024;

/// The images of a node.
#[derive(Debug)]
pub(super) struct Images {
    store: Arc<Store>,
}

#[derive(Debug)]
struct Store {
    /// Where people put them.
    folder: PathBuf,
    /// Where they are unpacked.
    unpacked: PathBuf,
    limits: Limits,
    /// One at a time: two containers may want the same.
    turn: Mutex<()>,
}

/// An unpacked image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) digest: String,
    pub(super) root: PathBuf,
    pub(super) config: Config,
}

/// What an image says of the program in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Config {
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) cmd: Option<Vec<String>>,
    pub(super) env: Option<Vec<String>>,
    pub(super) user: String,
    pub(super) working_dir: String,
}

impl Images {
    pub(super) fn new(folder: PathBuf, unpacked: PathBuf) -> Self {
        Self::limited(folder, unpacked, LIMITS)
    }

    fn limited(folder: PathBuf, unpacked: PathBuf, limits: Limits) -> Self {
        let store = Store {
            folder,
            unpacked,
            limits,
            turn: Mutex::default(),
        };
        Self {
            store: Arc::new(store),
        }
    }

    /// The image of that name, unpacked; none when the folder does not have it.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Image>, UnpackError> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || store.find(&name)).await;
        found.unwrap_or_else(|error| {
            let folder = &self.store.folder;
            Err(UnpackError::io("unpack", folder)(io::Error::other(error)))
        })
    }
}

impl Store {
    fn find(&self, name: &str) -> Result<Option<Image>, UnpackError> {
        if !self.folder.is_dir() {
            return Ok(None);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = fs::read_dir(&self.folder).map_err(UnpackError::io("list", &self.folder))?;
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for entry in entries {
            let layout = Layout {
                folder: if entry.is_dir() {
                    entry
                } else {
                    self.opened(&entry)?
                },
            };
            if let Some(found) = self.in_layout(&layout, name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The layout that an archive holds; a changed archive is opened again.
    fn opened(&self, archive: &Path) -> Result<PathBuf, UnpackError> {
        let changed = fs::metadata(archive).and_then(|facts| facts.modified());
        let changed = changed.map_err(UnpackError::io("read", archive))?;
        let stamp = changed.duration_since(std::time::UNIX_EPOCH);
        let stamp = stamp.map(|since| since.as_nanos()).unwrap_or_default();
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name
            .chars()
            .filter(|c| !matches!(c, ':' | ',' | '\\'))
            .collect();
        let layouts = self.unpacked.join("layouts");
        let target = layouts.join(format!("{name}-{stamp:x}"));
        if !target.is_dir() {
            self.draft(&target, |draft| Layout::unpack(archive, draft, self.limits))?;
        }
        Ok(target)
    }

    fn in_layout(&self, layout: &Layout, name: &str) -> Result<Option<Image>, UnpackError> {
        let Ok(Some(index)) = layout.index() else {
            return Ok(None);
        };
        let Some(found) = index.manifests.iter().find(|one| is_named(one, name)) else {
            return Ok(None);
        };
        let mut found = found.clone();
        // An image for many machines is an index of one for each.
        if found.media_type.contains("index") || found.media_type.contains("manifest.list") {
            let index: Index = layout.read(&Digest::parse(&found.digest)?)?;
            let ours = |descriptor: &&Descriptor| {
                let platform = descriptor.platform.as_ref();
                platform.is_some_and(|p| p.os == "linux" && p.architecture == architecture())
            };
            let own = index.manifests.iter().find(ours).cloned();
            found = own.ok_or_else(|| UnpackError::OtherMachine(name.to_owned()))?;
        }
        let digest = Digest::parse(&found.digest)?;
        self.unpack(layout, &digest).map(Some)
    }

    fn unpack(&self, layout: &Layout, digest: &Digest) -> Result<Image, UnpackError> {
        let manifest: Manifest = layout.read(digest)?;
        let file: ImageFile = layout.read(&Digest::parse(&manifest.config.digest)?)?;
        let name = format!("{}-{}", digest.algorithm(), digest.value());
        let root = self.unpacked.join("roots").join(name);
        if !root.is_dir() {
            let mut left = Room::new(self.limits);
            let mut layers = Vec::new();
            for layer in &manifest.layers {
                let digest = Digest::parse(&layer.digest)?;
                let path = layout.blob(&digest);
                layers.push(Layer::check(&layout.folder, path, digest, &mut left)?);
            }
            self.draft(&root, |draft| {
                check_disk(draft, left.taken())?;
                let open = || UnpackError::io("open", draft);
                fs::set_permissions(draft, fs::Permissions::from_mode(0o755)).map_err(open())?;
                let folder = Folder::open(draft).map_err(open())?;
                layers.iter().try_for_each(|layer| layer.unpack(&folder))
            })?;
        }
        Ok(Image {
            digest: digest.to_string(),
            root,
            config: file.config,
        })
    }

    /// Makes a folder that is there whole or not at all.
    fn draft(
        &self,
        target: &Path,
        fill: impl FnOnce(&Path) -> Result<(), UnpackError>,
    ) -> Result<(), UnpackError> {
        let draft = self.unpacked.join("draft");
        let made = || UnpackError::io("make", target);
        // A former try may have been cut off.
        folder::remove_all(&draft).map_err(made())?;
        fs::create_dir_all(&draft).map_err(made())?;
        let filled = fill(&draft);
        if filled.is_err() {
            let _ = folder::remove_all(&draft);
        }
        filled?;
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(made())?;
        }
        fs::rename(&draft, target).map_err(made())
    }
}

/// Whether the disk has room for what an image unpacks to: a full one would stop the cluster.
fn check_disk(folder: &Path, wanted: u64) -> Result<(), UnpackError> {
    let disk = rustix::fs::statvfs(folder)
        .map_err(|error| UnpackError::io("measure", folder)(error.into()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if wanted < free {
        return Ok(());
    }
    Err(UnpackError::TooLarge {
        path: folder.to_owned(),
        limit: free,
        what: "bytes, which is all that the disk has left",
    })
}

impl Image {
    /// What a container runs of it: its own command and arguments, or the image's.
    pub(super) fn program(&self, launch: &Launch) -> Program {
        let container = &launch.container;
        let mut environment = launch.environment.clone();
        for variable in self.config.env.iter().flatten() {
            let Some((name, value)) = variable.split_once('=') else {
                continue;
            };
            // The node's own path is good for the machine's root alone.
            let ours = name == "PATH" && environment.get(name) == Some(FOLDERS);
            if ours || environment.get(name).is_none() {
                environment.set(name, value);
            }
        }
        let said = |list: &Option<Vec<String>>| list.clone().filter(|list| !list.is_empty());
        let (command, args) = (said(&container.command), said(&container.args));
        let rest = match (&command, args) {
            (_, Some(args)) => args,
            // A command of the container's own replaces the image's arguments, too.
            (Some(_), None) => Vec::new(),
            (None, None) => self.config.cmd.clone().unwrap_or_default(),
        };
        let first = command.or_else(|| self.config.entrypoint.clone());
        let words = first.unwrap_or_default().into_iter().chain(rest);
        Program {
            argv: words.map(|arg| environment.expand(&arg)).collect(),
            environment,
            image_id: format!(
                "{}@{}",
                container.image.as_deref().unwrap_or_default(),
                self.digest
            ),
            user: self.user(),
        }
    }

    /// The number of the user that the image runs as.
    pub(super) fn user(&self) -> Option<u32> {
        let name = self.config.user.split(':').next().unwrap_or_default();
        if name.is_empty() {
            return None;
        }
        name.parse().ok().or_else(|| {
            let root = Folder::open(&self.root).ok()?;
            let list = root.file_as_root(Path::new("etc/passwd")).ok()?;
            let mut users = String::new();
            list.take(LONGEST_LIST).read_to_string(&mut users).ok()?;
            let line = users
                .lines()
                .find(|line| line.split(':').next() == Some(name))?;
            line.split(':').nth(2)?.parse().ok()
        })
    }
}

/// Whether what a layout describes is the image of a name, which may say its digest.
fn is_named(descriptor: &Descriptor, name: &str) -> bool {
    let (name, digest) = match name.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (name, None),
    };
    if digest.is_some_and(|digest| digest != descriptor.digest) {
        return false;
    }
    let names = NAMES
        .iter()
        .filter_map(|key| descriptor.annotations.get(*key));
    // What the digest says, a tag need not.
    let plain = |name: &str| digest.map_or(name.to_owned(), |_| without_tag(name).to_owned());
    names
        .into_iter()
        .any(|known| is_it(&plain(known), &plain(name)))
}

fn without_tag(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((short, tag)) if !tag.contains('/') => short,
        _ => name,
    }
}

/// Whether a layout's name is the one a container uses. Some tools write the tag alone or leave the
/// registry out; a name without a tag is the latest.
fn is_it(known: &str, name: &str) -> bool {
    let full = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or_default();
        let tagged = if last.contains(':') {
            name.to_owned()
        } else {
            format!("{name}:latest")
        };
        let short = tagged.strip_prefix("docker.io/").unwrap_or(&tagged);
        short.strip_prefix("library/").unwrap_or(short).to_owned()
    };
    full(known) == full(name)
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests;
