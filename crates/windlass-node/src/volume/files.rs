//! Files and folders of volumes on disk.
//!
//! ```text
//! <volume>/key                ─► ..data/key
//! <volume>/..data             ─► ..7f3a
//! <volume>/..7f3a/key         the file
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink,
};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Gid, Uid};

use super::VolumeError;
use super::content::{Files, HostKind};

/// The link that is replaced when everything is written.
const DATA: &str = "..data";

/// A folder that anybody may use, for the containers of a pod.
pub(super) fn make_shared_folder(path: &Path, group: Option<u32>) -> Result<(), VolumeError> {
    make_folder(path)?;
    let mode = if group.is_some() { 0o2777 } else { 0o777 };
    give(path, None, group);
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(VolumeError::io("open", path))
}

pub(super) fn make_folder(path: &Path) -> Result<(), VolumeError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
        .map_err(VolumeError::io("make", path))
}

/// Removes what a folder holds.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes the files of a volume what they should be, all at once; nothing is touched when they are.
pub(super) fn update(folder: &Path, wanted: &Files) -> Result<(), VolumeError> {
    let data = folder.join(DATA);
    let name = name_of(wanted);
    let present = fs::read_link(&data).ok();
    if present.as_deref() == Some(Path::new(&name)) {
        return Ok(());
    }
    let draft = folder.join(&name);
    // A former try may have been cut off.
    let _ = fs::remove_dir_all(&draft);
    make_folder(&draft)?;
    for (path, file) in &wanted.files {
        let target = draft.join(inside(path)?);
        if let Some(parent) = target.parent() {
            make_folder(parent)?;
        }
        write(&target, &file.bytes).map_err(VolumeError::io("write", &target))?;
        give(&target, file.owner, wanted.group);
        fs::set_permissions(&target, fs::Permissions::from_mode(file.mode))
            .map_err(VolumeError::io("open", &target))?;
    }
    let next = folder.join("..data_tmp");
    let _ = fs::remove_file(&next);
    symlink(&name, &next).map_err(VolumeError::io("link", &next))?;
    fs::rename(&next, &data).map_err(VolumeError::io("link", &data))?;
    link(folder, wanted)?;
    if let Some(old) = present {
        let _ = fs::remove_dir_all(folder.join(old));
    }
    Ok(())
}

/// Makes the links that programs see, and removes those of files that are gone.
fn link(folder: &Path, wanted: &Files) -> Result<(), VolumeError> {
    let names: BTreeSet<&str> = wanted
        .files
        .keys()
        .filter_map(|path| path.split('/').next())
        .collect();
    for name in &names {
        let link = folder.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(name), &link).map_err(VolumeError::io("link", &link))?;
        }
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("..") && !names.contains(name.as_str()) {
            let _ = fs::remove_file(entry.path());
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

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    // Nobody reads it before its mode is set.
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// Gives a file away, as far as the node can.
fn give(path: &Path, owner: Option<u32>, group: Option<u32>) {
    if (owner.is_some() || group.is_some())
        && let Err(error) =
            rustix::fs::chown(path, owner.map(Uid::from_raw), group.map(Gid::from_raw))
    {
        tracing::debug!(%error, path = %path.display(), "cannot give a file to its user");
    }
}

/// A path that stays in the volume.
pub(super) fn inside(path: &str) -> Result<&Path, VolumeError> {
    let stays = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if stays {
        Ok(Path::new(path))
    } else {
        Err(VolumeError::Outside(path.to_owned()))
    }
}

/// A path of the machine, once it is what it should be.
pub(super) fn host(path: PathBuf, kind: HostKind) -> Result<PathBuf, VolumeError> {
    match kind {
        HostKind::FolderOrCreate => make_folder(&path)?,
        HostKind::FileOrCreate if !path.exists() => {
            write(&path, b"").map_err(VolumeError::io("make", &path))?;
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o644));
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

/// A folder in a volume that a container wants to see alone; made when it is missing, as open as
/// the folder above it.
pub(super) fn below(volume: &Path, path: &str) -> Result<PathBuf, VolumeError> {
    let target = volume.join(inside(path)?);
    if fs::symlink_metadata(&target).is_err() {
        make_folder(&target)?;
        if let Ok(above) = fs::metadata(volume) {
            let mode = fs::Permissions::from_mode(above.mode() & 0o7777);
            let _ = fs::set_permissions(&target, mode);
        }
    }
    let real = |path: &Path| fs::canonicalize(path).map_err(VolumeError::io("find", path));
    let (outer, inner) = (real(volume)?, real(&target)?);
    if inner.starts_with(outer) {
        Ok(inner)
    } else {
        Err(VolumeError::Outside(path.to_owned()))
    }
}
