//! Files and folders of volumes on disk.
//!
//! ```text
//! <volume>/key                ─► ..data/key
//! <volume>/..data             ─► ..7f3a
//! <volume>/..7f3a/key         the file
//! ```

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::VolumeError;
use super::content::{File, Files, HostKind};
use crate::folder::{self, Folder};

/// The link that is replaced when everything is written.
const DATA: &str = "..data";
/// What it is before it takes the other's place.
const NEXT: &str = "..data_tmp";

/// Opens a folder of a pod that every user may use, and makes it where it is missing.
pub(super) fn shared_folder(
    pod: &Folder,
    name: &str,
    group: Option<u32>,
) -> Result<Folder, VolumeError> {
    let folder = match pod.make_new(name, 0o755) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return folder_of(pod, name);
        }
        new => new.map_err(failed("make", pod, name))?,
    };
    give(&folder, None, group, folder.path());
    let mode = if group.is_some() { 0o2777 } else { 0o777 };
    folder.set_mode(mode).map_err(failed("open", pod, name))?;
    Ok(folder)
}

/// Opens a folder of a pod.
pub(super) fn folder_of(pod: &Folder, name: &str) -> Result<Folder, VolumeError> {
    pod.folder(name).map_err(failed("open", pod, name))
}

/// Opens a folder of a pod that is not its users' to write to, and makes it where it is missing.
pub(super) fn own_folder(pod: &Folder, name: &str) -> Result<Folder, VolumeError> {
    pod.make(name, 0o755).map_err(failed("make", pod, name))
}

/// Makes the files of a volume what they should be, all at once; nothing is touched when they are.
pub(super) fn update(folder: &Folder, wanted: &Files) -> Result<(), VolumeError> {
    let name = name_of(wanted);
    let present = folder.link(DATA).ok();
    if present.as_deref() == Some(Path::new(&name)) {
        return Ok(());
    }
    // A former try may have been cut off.
    folder
        .remove(&name)
        .map_err(failed("remove", folder, &name))?;
    let draft = folder
        .make_new(&name, 0o755)
        .map_err(failed("make", folder, &name))?;
    for (path, file) in &wanted.files {
        write(&draft, path, file, wanted.group)?;
    }
    folder
        .remove(NEXT)
        .map_err(failed("remove", folder, NEXT))?;
    folder
        .make_link(Path::new(&name), NEXT)
        .and_then(|()| folder.rename(NEXT, DATA))
        .map_err(failed("link", folder, DATA))?;
    link(folder, wanted)?;
    // What the link led to is believed only if the node may have made it.
    let old = present.as_deref().map(Path::as_os_str);
    if let Some(old) = old.filter(|old| is_own(old) && *old != OsStr::new(&name)) {
        let _ = folder.remove(old);
    }
    Ok(())
}

/// Makes the links that programs see, and removes whatever else is there.
fn link(folder: &Folder, wanted: &Files) -> Result<(), VolumeError> {
    let mut names = BTreeSet::new();
    for path in wanted.files.keys() {
        names.extend(parts(path)?.into_iter().next());
    }
    for name in &names {
        let target = Path::new(DATA).join(name);
        if folder.link(name).ok().as_deref() != Some(&*target) {
            folder
                .remove(name)
                .and_then(|()| folder.make_link(&target, name))
                .map_err(failed("link", folder, name))?;
        }
    }
    for name in folder.names().unwrap_or_default() {
        if !name.as_bytes().starts_with(b"..") && !names.contains(&*name) {
            let _ = folder.remove(&name);
        }
    }
    Ok(())
}

/// A name that says what is in a folder, so that the same is recognised.
fn name_of(wanted: &Files) -> String {
    let mut hasher = DefaultHasher::new();
    wanted.group.hash(&mut hasher);
    for (path, file) in &wanted.files {
        (path, &file.bytes, file.mode, file.owner).hash(&mut hasher);
    }
    format!("..{:016x}", hasher.finish())
}

/// Whether a name is one that [`name_of`] gives.
fn is_own(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(b"..");
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Writes a file into a folder that is not in use yet.
fn write(draft: &Folder, path: &str, file: &File, group: Option<u32>) -> Result<(), VolumeError> {
    let mut parts = parts(path)?;
    let Some(name) = parts.pop() else {
        return Err(VolumeError::Outside(path.to_owned()));
    };
    let mut parent: Option<Folder> = None;
    for part in parts {
        let above = parent.as_ref().unwrap_or(draft);
        let made = above
            .make(part, 0o755)
            .map_err(failed("make", above, part))?;
        parent = Some(made);
    }
    let folder = parent.as_ref().unwrap_or(draft);
    // Nobody reads it before its mode is set.
    let mut written = folder
        .create(name, 0o600)
        .map_err(failed("write", folder, name))?;
    written
        .write_all(&file.bytes)
        .map_err(failed("write", folder, name))?;
    give(&written, file.owner, group, &folder.path().join(name));
    written
        .set_permissions(fs::Permissions::from_mode(file.mode))
        .map_err(failed("open", folder, name))
}

/// Gives a file away, as far as the node can.
fn give(what: impl AsFd, owner: Option<u32>, group: Option<u32>, path: &Path) {
    if (owner.is_some() || group.is_some())
        && let Err(error) = folder::give(what, owner, group)
    {
        tracing::debug!(%error, path = %path.display(), "cannot give a file to its user");
    }
}

/// The names on a path that stays in the volume. What begins with two dots is the node's own there.
fn parts(path: &str) -> Result<Vec<&OsStr>, VolumeError> {
    let parts = inside(path)?;
    match parts.first() {
        Some(first) if !first.as_bytes().starts_with(b"..") => Ok(parts),
        _ => Err(VolumeError::Outside(path.to_owned())),
    }
}

/// The names on a path, none of which leads upwards.
fn inside(path: &str) -> Result<Vec<&OsStr>, VolumeError> {
    let mut parts = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            _ => return Err(VolumeError::Outside(path.to_owned())),
        }
    }
    Ok(parts)
}

pub(super) fn failed(
    verb: &'static str,
    folder: &Folder,
    name: impl AsRef<OsStr>,
) -> impl FnOnce(io::Error) -> VolumeError {
    let path = folder.path().join(name.as_ref());
    move |source| VolumeError::Io { verb, path, source }
}

fn make_folder(path: &Path) -> Result<(), VolumeError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
        .map_err(VolumeError::io("make", path))
}

/// A path of the machine, once it is what it should be.
pub(super) fn host(path: PathBuf, kind: HostKind) -> Result<PathBuf, VolumeError> {
    match kind {
        HostKind::FolderOrCreate => make_folder(&path)?,
        HostKind::FileOrCreate if !path.exists() => {
            let mut options = fs::OpenOptions::new();
            let made = options.write(true).create(true).mode(0o600).open(&path);
            let made = made.map_err(VolumeError::io("make", &path))?;
            let _ = made.set_permissions(fs::Permissions::from_mode(0o644));
        }
        _ => {}
    }
    let found = fs::metadata(&path);
    let is = |test: fn(&fs::Metadata) -> bool| found.as_ref().is_ok_and(test);
    let (fits, wanted) = match kind {
        HostKind::FolderOrCreate | HostKind::Folder => (is(fs::Metadata::is_dir), "directory"),
        HostKind::FileOrCreate | HostKind::File => (is(fs::Metadata::is_file), "file"),
        HostKind::Socket => (is(|m| m.file_type().is_socket()), "socket file"),
        HostKind::CharDevice => (is(|m| m.file_type().is_char_device()), "character device"),
        HostKind::BlockDevice => (is(|m| m.file_type().is_block_device()), "block device"),
    };
    if fits {
        Ok(path)
    } else {
        Err(VolumeError::HostPath {
            path: path.display().to_string(),
            wanted,
        })
    }
}

/// What a container wants to see of a volume, opened; a folder that is missing is made, as open as
/// the volume. Links are followed as long as they stay in the volume, as kubelet does.
pub(super) fn below(volume: &Path, path: &str) -> Result<PathBuf, VolumeError> {
    let parts = inside(path)?;
    let found = |name: &Path| {
        let name = volume.join(name);
        move |error: io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::XDEV | Errno::LOOP) => VolumeError::Outside(path.to_owned()),
            _ => VolumeError::io("open", &name)(error),
        }
    };
    let volume = Folder::named(volume).map_err(found(Path::new("")))?;
    let mut opened = volume
        .beneath(Path::new("."))
        .map_err(found(Path::new("")))?;
    let mut done = PathBuf::new();
    for part in parts {
        done.push(part);
        opened = match volume.beneath(&done) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_below(&volume, &opened, part).map_err(found(&done))?
            }
            next => next.map_err(found(&done))?,
        };
    }
    folder::place_of(&opened).map_err(found(&done))
}

/// Makes a folder in an open one, as open as the volume it is in.
fn make_below(volume: &Folder, parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        // A link that leads nowhere, or another container was quicker.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    rustix::fs::fchmod(&made, Mode::from_raw_mode(volume.mode()?))?;
    Ok(made)
}
