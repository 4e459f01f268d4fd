//! Real images, where there are any: OCI layouts and archives in the image folder.
//!
//! An image is found by the name that its layout gives it
//! (`org.opencontainers.image.ref.name`, or the full name that containerd's tools write), and
//! unpacked once into the node's folder, layer by layer, by `tar`. Its file system is then what a
//! container's root is an overlay of, instead of the machine's own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::Command;

use super::FOLDERS;
use crate::program::Program;
use crate::runtime::Launch;

const NAMES: [&str; 2] = [
    "io.containerd.image.name",
    "org.opencontainers.image.ref.name",
];

/// The images of a node.
#[derive(Debug)]
pub(super) struct Images {
    /// Where people put them.
    folder: PathBuf,
    /// Where they are unpacked.
    unpacked: PathBuf,
    /// One at a time: two containers may want the same.
    turn: tokio::sync::Mutex<()>,
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

#[derive(Debug, Clone, Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    digest: String,
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct ImageFile {
    #[serde(default)]
    config: Config,
}

impl Images {
    pub(super) fn new(folder: PathBuf, unpacked: PathBuf) -> Self {
        Self {
            folder,
            unpacked,
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The image of that name, unpacked; none when the folder does not have it.
    pub(super) async fn find(&self, name: &str) -> io::Result<Option<Image>> {
        if !self.folder.is_dir() {
            return Ok(None);
        }
        let _turn = self.turn.lock().await;
        let mut entries: Vec<PathBuf> = fs::read_dir(&self.folder)?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for entry in entries {
            let layout = if entry.is_dir() {
                entry
            } else {
                self.opened(&entry).await?
            };
            if let Some(found) = self.in_layout(&layout, name).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The layout that an archive holds; a changed archive is opened anew.
    async fn opened(&self, archive: &Path) -> io::Result<PathBuf> {
        let facts = fs::metadata(archive)?;
        let changed = facts.modified()?.duration_since(std::time::UNIX_EPOCH);
        let stamp = changed.map(|since| since.as_nanos()).unwrap_or_default();
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name
            .chars()
            .filter(|c| !matches!(c, ':' | ',' | '\\'))
            .collect();
        let target = self
            .unpacked
            .join("archives")
            .join(format!("{name}-{stamp:x}"));
        if !target.is_dir() {
            let draft = target.with_extension("draft");
            let _ = fs::remove_dir_all(&draft);
            fs::create_dir_all(&draft)?;
            tar(&["-xf"], archive, Some(&draft)).await?;
            fs::rename(draft, &target)?;
        }
        Ok(target)
    }

    async fn in_layout(&self, layout: &Path, name: &str) -> io::Result<Option<Image>> {
        let Ok(index) = read::<Index>(&layout.join("index.json")) else {
            return Ok(None);
        };
        let named = |descriptor: &&Descriptor| {
            NAMES
                .iter()
                .filter_map(|key| descriptor.annotations.get(*key))
                .any(|known| is_it(known, name))
        };
        let Some(found) = index.manifests.iter().find(named) else {
            return Ok(None);
        };
        let mut found = found.clone();
        // An image for many machines is an index of one for each.
        if found.media_type.contains("index") || found.media_type.contains("manifest.list") {
            let index: Index = read(&blob(layout, &found.digest)?)?;
            let ours = |descriptor: &&Descriptor| {
                let platform = descriptor.platform.as_ref();
                platform.is_some_and(|p| p.os == "linux" && p.architecture == architecture())
            };
            let own = index.manifests.iter().find(ours).cloned();
            found = own.ok_or_else(|| {
                io::Error::other(format!("image \"{name}\" is not for this kind of machine"))
            })?;
        }
        self.unpack(layout, &found.digest).await.map(Some)
    }

    async fn unpack(&self, layout: &Path, digest: &str) -> io::Result<Image> {
        let manifest: Manifest = read(&blob(layout, digest)?)?;
        let file: ImageFile = read(&blob(layout, &manifest.config.digest)?)?;
        let root = self.unpacked.join(digest.replace(':', "-"));
        if !root.is_dir() {
            let draft = root.with_extension("draft");
            let _ = fs::remove_dir_all(&draft);
            fs::create_dir_all(&draft)?;
            for layer in &manifest.layers {
                lay(&blob(layout, &layer.digest)?, &draft).await?;
            }
            fs::rename(draft, &root)?;
        }
        Ok(Image {
            digest: digest.to_owned(),
            root,
            config: file.config,
        })
    }
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
            let users = fs::read_to_string(self.root.join("etc/passwd")).ok()?;
            let line = users
                .lines()
                .find(|line| line.split(':').next() == Some(name))?;
            line.split(':').nth(2)?.parse().ok()
        })
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

/// Puts a layer on top of what is there: what it hides goes first.
async fn lay(layer: &Path, root: &Path) -> io::Result<()> {
    let listed = Command::new("tar")
        .arg("-tf")
        .arg(layer)
        .stdin(Stdio::null())
        .output()
        .await?;
    for path in String::from_utf8_lossy(&listed.stdout).lines() {
        let path = Path::new(path);
        let (Some(name), folder) = (path.file_name().and_then(|n| n.to_str()), path.parent())
        else {
            continue;
        };
        let folder = folder.unwrap_or(Path::new(""));
        // A name must not lead out of the image.
        if folder
            .components()
            .any(|part| matches!(part, std::path::Component::ParentDir))
        {
            continue;
        }
        let folder = root.join(folder.strip_prefix("/").unwrap_or(folder));
        if name == ".wh..wh..opq" {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                remove(&entry.path());
            }
        } else if let Some(hidden) = name.strip_prefix(".wh.") {
            remove(&folder.join(hidden));
        }
    }
    tar(
        &["--exclude=.wh.*", "--numeric-owner", "-xpf"],
        layer,
        Some(root),
    )
    .await
}

fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir()) {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

async fn tar(args: &[&str], archive: &Path, into: Option<&Path>) -> io::Result<()> {
    let mut command = Command::new("tar");
    command.args(args).arg(archive).stdin(Stdio::null());
    if let Some(folder) = into {
        command.arg("-C").arg(folder);
    }
    let output = command.output().await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "cannot unpack {}: {}",
        archive.display(),
        said.trim()
    )))
}

/// Where a layout keeps what has a digest.
fn blob(layout: &Path, digest: &str) -> io::Result<PathBuf> {
    let plain = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric());
    match digest.split_once(':') {
        Some((kind, value)) if plain(kind) && plain(value) => {
            Ok(layout.join("blobs").join(kind).join(value))
        }
        _ => Err(io::Error::other(format!("{digest} is no digest"))),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let bytes = fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
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
