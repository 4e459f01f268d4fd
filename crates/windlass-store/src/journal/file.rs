//! The few things the journal asks of a folder of files.
//!
//! Behind a trait, so that tests can play a disk that forgets what was not synced, tears writes,
//! is full, or fails to sync.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// One folder.
pub(crate) trait Files: Send + Sync + fmt::Debug {
    /// The names of the files there are.
    fn list(&self) -> io::Result<Vec<String>>;
    /// The whole content of a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// A new file, or an old one emptied, to be written from its start.
    fn create(&self, name: &str) -> io::Result<Box<dyn Growing>>;
    /// A file that is there, to be written on at its end.
    fn open(&self, name: &str) -> io::Result<Box<dyn Growing>>;
    /// Gives a file another name; one of that name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_folder(&self) -> io::Result<()>;
}

/// A file that grows at its end.
pub(crate) trait Growing: Send + fmt::Debug {
    /// Writes at the end. After an error part of it may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Writes what is there already once more, so that the next sync is sure to write it.
    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes durable what was written.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file off after `length` bytes.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// A folder on disk.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// The folder at `path`, made if it is not there; only its owner can look into it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // A folder that is made is durable when the one it is in is synced, and that when its own
        // is: all that are made here, and the one that was there.
        let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.is_dir()).collect();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
        for made in missing.into_iter().chain([path]) {
            let parent = made.parent().unwrap_or(Path::new("/"));
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            File::open(parent)?.sync_all()?;
        }
        Ok(Self(path.to_owned()))
    }
}

impl Files for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.0)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(self.0.join(name))?;
        Ok(Box::new(OnDisk(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        let mut file = OpenOptions::new().write(true).open(self.0.join(name))?;
        file.seek(SeekFrom::End(0))?;
        Ok(Box::new(OnDisk(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

#[derive(Debug)]
struct OnDisk(File);

impl Growing for OnDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)?;
        self.0.seek(SeekFrom::Start(length)).map(|_| ())
    }
}
