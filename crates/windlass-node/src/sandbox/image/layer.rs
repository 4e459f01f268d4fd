//! Layers: what each adds to a root, and what it hides of those before it.
//!
//! A layer may come from anywhere, and the node unpacks it as root. So nothing of it is named by a path of
//! the machine: the folder of each entry is opened by the kernel as if the image's root were the
//! root of everything ([`Folder::as_root`]), and the entry itself is made in it by its name alone.
//!
//! A layer is read to its end before anything of it is written: of one that is not what its digest
//! says, or too large, nothing is unpacked at all. What a layer hides are things of those before it,
//! whatever the order in it, so that goes first.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid};
use tar::EntryType;

use super::UnpackError;
use super::archive::{self, Archive, Entry};
use super::digest::{Digest, Hashing};
use super::packed::{Limits, Room, Unpacked};
use crate::folder::{self, Folder};

/// How names begin that hide others, what is special among them, and the one that hides everything.
const HIDES: &[u8] = b".wh.";
const SPECIAL: &[u8] = b".wh..wh.";
const HIDES_ALL: &[u8] = b".wh..wh..opq";

/// What a layer unpacks to, hashed as it is read.
type Content = Unpacked<Hashing<File>>;

/// A layer whose content is what its digest says.
pub(super) struct Layer {
    path: PathBuf,
    layout: PathBuf,
    digest: Digest,
    /// Whose things it hides all, and which.
    hides: BTreeSet<(PathBuf, Option<OsString>)>,
}

impl Layer {
    /// Reads a layer: what is wrong with it is found before anything of it is unpacked.
    pub(super) fn check(
        layout: &Path,
        path: PathBuf,
        digest: Digest,
        room: &mut Room,
    ) -> Result<Self, UnpackError> {
        let mut layer = Self {
            path,
            layout: layout.to_owned(),
            digest,
            hides: BTreeSet::new(),
        };
        // First of all: whatever else is wrong with another file is no news.
        let file = folder::open_file(&layer.path).map_err(layer.unreadable())?;
        layer.compare(layer.digest.reading(file))?;
        let mut hides = BTreeSet::new();
        let mut headers = 0;
        layer.read(room.limits(), |entry, archive| {
            room.take(&layer.path, entry.size, archive.headers() - headers)?;
            headers = archive.headers();
            let names = layer.names(&entry.path, entry)?;
            let Some((name, folders)) = names.split_last() else {
                return Ok(());
            };
            let folder: PathBuf = folders.iter().collect();
            if name.as_bytes() == HIDES_ALL {
                hides.insert((folder, None));
            } else if let Some(hidden) = hidden(name) {
                if matches!(hidden.as_bytes(), b"" | b"." | b"..") {
                    return Err(layer.refuse(entry, "it hides no name of a file"));
                }
                hides.insert((folder, Some(hidden.to_owned())));
            }
            Ok(())
        })?;
        layer.hides = hides;
        Ok(layer)
    }

    /// Puts the layer on top of what is there.
    pub(super) fn unpack(&self, root: &Folder) -> Result<(), UnpackError> {
        for (folder, name) in &self.hides {
            let failed = || UnpackError::io("remove", &root.path().join(folder));
            let folder = match root.as_root(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                folder => folder.map_err(failed())?,
            };
            match name {
                Some(name) => folder.remove(name),
                None => folder.clear(),
            }
            .map_err(failed())?;
        }
        // It was measured.
        self.read(Limits::NONE, |entry, archive| {
            let names = self.names(&entry.path, entry)?;
            let put = match names.split_last() {
                Some((name, _)) if name.as_bytes().starts_with(HIDES) => return Ok(()),
                Some((name, folders)) => folder_for(root, folders)
                    .and_then(|folder| put(root, &folder, name, entry, archive)),
                None if entry.kind.is_dir() => own(root, entry),
                None => Ok(()),
            };
            put.map_err(|error| self.refuse(entry, error))
        })
    }

    /// Goes through the entries, and makes sure that all of it is what the digest says.
    fn read(
        &self,
        limits: Limits,
        mut each: impl FnMut(&Entry, &mut Archive<Content>) -> Result<(), UnpackError>,
    ) -> Result<(), UnpackError> {
        let file = folder::open_file(&self.path).map_err(self.unreadable())?;
        let unpacked = Unpacked::new(&self.path, self.digest.reading(file), limits)?;
        let mut archive = Archive::new(unpacked);
        while let Some(entry) = archive.next().map_err(self.unreadable())? {
            each(&entry, &mut archive)?;
        }
        let rest = archive.into_rest().finish().map_err(self.unreadable())?;
        self.compare(rest)
    }

    /// Makes sure that what was read is what the digest says.
    fn compare(&self, read: Hashing<File>) -> Result<(), UnpackError> {
        let found = read.finish().map_err(self.unreadable())?;
        if found == self.digest {
            return Ok(());
        }
        Err(UnpackError::Changed {
            layout: self.layout.clone(),
            wanted: self.digest.to_string(),
            found: found.to_string(),
        })
    }

    fn unreadable(&self) -> impl FnOnce(io::Error) -> UnpackError + use<> {
        UnpackError::io("read", &self.path)
    }

    fn names<'a>(&self, path: &'a [u8], entry: &Entry) -> Result<Vec<&'a OsStr>, UnpackError> {
        archive::names(path).ok_or_else(|| self.refuse(entry, "it leads out of the image"))
    }

    fn refuse(&self, entry: &Entry, why: impl std::fmt::Display) -> UnpackError {
        UnpackError::Entry {
            path: self.path.clone(),
            entry: String::from_utf8_lossy(&entry.path).into_owned(),
            why: why.to_string(),
        }
    }
}

/// Makes an entry in its folder; what has its name is replaced, but for a folder by a folder.
fn put(
    root: &Folder,
    folder: &Folder,
    name: &OsStr,
    entry: &Entry,
    content: &mut Archive<Content>,
) -> io::Result<()> {
    if entry.kind.is_dir() {
        let made = if let Ok(there) = folder.folder(name) {
            there
        } else {
            folder.remove(name)?;
            folder.make_new(name, 0o755)?
        };
        return own(&made, entry);
    }
    // A device would be one of the machine's: an image has no need of any.
    if entry.kind.is_character_special() || entry.kind.is_block_special() {
        return Ok(());
    }
    folder.remove(name)?;
    match entry.kind {
        EntryType::Regular | EntryType::Continuous => {
            let mut file = folder.create(name, 0o600)?;
            let copied = io::copy(content, &mut file)?;
            debug_assert_eq!(copied, entry.size, "all of an entry is read");
            own(&file, entry)?;
            let time = Timespec {
                tv_sec: entry.changed,
                tv_nsec: 0,
            };
            let times = Timestamps {
                last_access: time,
                last_modification: time,
            };
            Ok(rustix::fs::futimens(&file, &times)?)
        }
        EntryType::Symlink => {
            folder.make_link(Path::new(OsStr::from_bytes(&entry.link)), name)?;
            if is_root() {
                let (owner, group) = (Uid::from_raw(entry.owner), Gid::from_raw(entry.group));
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(folder, name, Some(owner), Some(group), flags)?;
            }
            Ok(())
        }
        EntryType::Link => {
            let names = archive::names(&entry.link);
            let names = names.ok_or_else(|| io::Error::other("it leads out of the image"))?;
            let (target, folders) = names
                .split_last()
                .ok_or_else(|| io::Error::other("it is a link to a folder"))?;
            let folders: PathBuf = folders.iter().collect();
            let other = root.as_root(&folders)?;
            Ok(rustix::fs::linkat(
                &other,
                *target,
                folder,
                name,
                AtFlags::empty(),
            )?)
        }
        EntryType::Fifo => {
            let mode = Mode::from_raw_mode(entry.mode);
            Ok(rustix::fs::mkfifoat(folder, name, mode)?)
        }
        _ => Ok(()),
    }
}

/// What a layer's file hides, if its name says that it does.
fn hidden(name: &OsStr) -> Option<&OsStr> {
    let name = name.as_bytes();
    let hidden = name.strip_prefix(HIDES)?;
    // Others that begin so are the notes of a file system to itself.
    (!name.starts_with(SPECIAL)).then(|| OsStr::from_bytes(hidden))
}

/// Opens the folder of an entry; those that the archive leaves out are made.
fn folder_for(root: &Folder, names: &[&OsStr]) -> io::Result<Folder> {
    let path: PathBuf = names.iter().collect();
    match root.as_root(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        folder => return folder,
    }
    let mut path = PathBuf::new();
    let mut folder = root.as_root(&path)?;
    for name in names {
        path.push(name);
        folder = match root.as_root(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = folder.make_new(name, 0o755)?;
                made.set_mode(0o755)?;
                made
            }
            next => next?,
        };
    }
    Ok(folder)
}

/// Gives a file or folder the owner and the mode that its entry says.
fn own(what: &impl std::os::fd::AsFd, entry: &Entry) -> io::Result<()> {
    if is_root() {
        folder::give(what, Some(entry.owner), Some(entry.group))?;
    }
    // After the owner: a change of that takes setuid away.
    Ok(rustix::fs::fchmod(what, Mode::from_raw_mode(entry.mode))?)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
