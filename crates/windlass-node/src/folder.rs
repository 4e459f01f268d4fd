//! Folders that containers write to, and how the node works in them.
//!
//! A container may put a link in place of anything it can write to, at any moment. So the node
//! never names what is in such a folder by a path: it opens the folder without following links, and
//! does everything relative to the open folder, by names of one component. A link that it finds is
//! a link, nothing to follow. Only [`Folder::beneath`] follows links, and the kernel sees to it that
//! they stay inside.

mod clear;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;

pub(crate) use clear::{is_aside, remove_all, set_aside};

/// How often the kernel may be asked again while a container renames things.
const ATTEMPTS: u32 = 32;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// For messages alone.
    path: PathBuf,
}

impl Folder {
    /// Opens a folder whose path is the node's own; its last component must not be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::open_as(path, OFlags::NOFOLLOW)
    }

    /// Opens a folder that the user of the machine named, who may name it by a link.
    pub(crate) fn named(path: &Path) -> io::Result<Self> {
        Self::open_as(path, OFlags::empty())
    }

    fn open_as(path: &Path, flags: OFlags) -> io::Result<Self> {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::open(path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder in this one.
    pub(crate) fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = single(name.as_ref())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(&self.fd, name, flags, Mode::empty())?,
            path: self.path.join(name),
        })
    }

    /// Opens a folder in this one, and makes it where it is missing.
    pub(crate) fn make(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Self> {
        match self.make_new(name.as_ref(), mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.folder(name),
            opened => opened,
        }
    }

    /// Makes a folder in this one, where nothing is yet.
    pub(crate) fn make_new(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Self> {
        let name = single(name.as_ref())?;
        rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(mode))?;
        self.folder(name)
    }

    /// Makes a file in this folder, where nothing is yet.
    pub(crate) fn create(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let name = single(name.as_ref())?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(mode))?;
        Ok(file.into())
    }

    /// Opens a regular file in this folder. A pipe without a writer is no reason to wait.
    pub(crate) fn file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = single(name.as_ref())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        regular(rustix::fs::openat(&self.fd, name, flags, Mode::empty())?)
    }

    /// Where a link in this folder leads.
    pub(crate) fn link(&self, name: impl AsRef<OsStr>) -> io::Result<PathBuf> {
        let name = single(name.as_ref())?;
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Makes a link in this folder, where nothing is yet.
    pub(crate) fn make_link(&self, target: &Path, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = single(name.as_ref())?;
        Ok(rustix::fs::symlinkat(target, &self.fd, name)?)
    }

    /// Gives something in this folder another name; what had that name is replaced.
    pub(crate) fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (single(from.as_ref())?, single(to.as_ref())?);
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Removes something in this folder, whatever it is, with all that is in it. That nothing is
    /// there is no error.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = single(name.as_ref())?;
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // A folder; some file systems say that it is not permitted.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        clear::clear(clear::open(&self.fd, name)?.as_fd())?;
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes all that is in this folder.
    pub(crate) fn clear(&self) -> io::Result<()> {
        clear::clear(self.fd.as_fd())
    }

    /// What is in this folder.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    pub(crate) fn mode(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(&self.fd)?.st_mode & 0o7777)
    }

    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(mode))?)
    }

    /// Opens what a path leads to from this folder, following links as long as they stay in it. What
    /// is opened can be mounted and looked at, not read.
    pub(crate) fn beneath(&self, path: &Path) -> io::Result<OwnedFd> {
        self.resolve(path, OFlags::PATH, ResolveFlags::BENEATH)
    }

    /// Opens the folder that a path leads to when this folder is the root of everything.
    pub(crate) fn as_root(&self, path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(Self {
                fd: self.fd.try_clone()?,
                path: self.path.clone(),
            });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(Self {
            fd: self.resolve(path, flags, ResolveFlags::IN_ROOT)?,
            path: self.path.join(path),
        })
    }

    /// Opens the regular file that a path leads to when this folder is the root of everything.
    pub(crate) fn file_as_root(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        regular(self.resolve(path, flags, ResolveFlags::IN_ROOT)?)
    }

    fn resolve(&self, path: &Path, flags: OFlags, how: ResolveFlags) -> io::Result<OwnedFd> {
        let (flags, how) = (flags | OFlags::CLOEXEC, how | ResolveFlags::NO_MAGICLINKS);
        for _ in 1..ATTEMPTS {
            match rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), how) {
                // Something on the way was renamed, and the kernel cannot say where it is.
                Err(Errno::AGAIN) => {}
                opened => return Ok(opened?),
            }
        }
        let opened = rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), how);
        Ok(opened?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a regular file by a path, without waiting for a writer when it is a pipe.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    regular(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// Where something that is open is, by a path without links.
pub(crate) fn place_of(what: impl AsFd) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd as _;
    std::fs::read_link(format!("/proc/self/fd/{}", what.as_fd().as_raw_fd()))
}

/// Gives an open file or folder away.
pub(crate) fn give(what: impl AsFd, owner: Option<u32>, group: Option<u32>) -> io::Result<()> {
    let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
    Ok(rustix::fs::fchown(what, owner, group)?)
}

fn regular(file: OwnedFd) -> io::Result<File> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if kind == FileType::RegularFile {
        Ok(file.into())
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// A name of one component, which leads to nowhere else.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_encoded_bytes();
    let leads_away = matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/');
    if leads_away {
        let message = format!("{} is no name of a file", name.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
