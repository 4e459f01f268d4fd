//! Emptying folders, however deep what containers left in them is.
//!
//! A program can nest folders deeper than a stack is, or than a process may have files open. So
//! there is no recursion: what is in a folder of a folder is moved up before that is removed. Two
//! folders are open at a time.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::Folder;

/// Removes the folder at a path that is the node's own, with all that is in it. That it is not there
/// is no error.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    match Folder::named(parent) {
        Ok(parent) => parent.remove(name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// How names of folders begin that are only there to be removed.
const ASIDE: &str = ".removed-";

/// Whether a folder is only there to be removed.
pub(crate) fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// Takes a folder of the node's away from its path, which is done at once, and says where it is now:
/// removing it may take long. None when there is none.
pub(crate) fn set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let name = path.file_name().unwrap_or_default();
    if is_aside(name) {
        return Ok(Some(path.to_owned()));
    }
    let mut aside = OsString::from(ASIDE);
    aside.push(name);
    let aside = path.with_file_name(aside);
    match fs::rename(path, &aside) {
        Ok(()) => Ok(Some(aside)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes all that is in a folder.
pub(super) fn clear(top: BorrowedFd<'_>) -> io::Result<()> {
    let mut moved = 0;
    loop {
        let mut is_empty = true;
        for entry in Dir::read_from(top)? {
            let entry = entry?;
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            is_empty = false;
            if !unlink(top, name)? {
                let folder = open(top, name)?;
                flatten(top, &folder, &mut moved)?;
                match rustix::fs::unlinkat(top, name, AtFlags::REMOVEDIR) {
                    // Something was added meanwhile: it is looked at in the next round.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if is_empty {
            return Ok(());
        }
    }
}

/// Removes the files of a folder and moves its folders to the top.
fn flatten(top: BorrowedFd<'_>, folder: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if is_dots(name) || unlink(folder, name)? {
            continue;
        }
        // Who is not root must be allowed to write to what is moved.
        drop(open(folder, name)?);
        loop {
            let to = CString::new(format!(".moved-{moved}"))?;
            *moved += 1;
            match rustix::fs::renameat_with(folder, name, top, &to, RenameFlags::NOREPLACE) {
                Ok(()) | Err(Errno::NOENT) => break,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Opens a folder so that what is in it can be removed, whatever its mode.
pub(super) fn open(parent: impl AsFd, name: impl Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |how| rustix::fs::openat(&parent, name, flags | how, Mode::empty());
    // Root needs no permission. Its owner does, also to move the folder itself.
    let found = open(OFlags::PATH)?;
    let _ = rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU);
    Ok(open(OFlags::RDONLY)?)
}

/// Removes what is no folder; false when it is one.
fn unlink(parent: impl AsFd, name: &CStr) -> io::Result<bool> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
