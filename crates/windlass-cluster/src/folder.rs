//! The data folder: one cluster at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The right to use a data folder. It ends with the process that holds it, however that ends.
#[derive(Debug)]
pub struct FolderLock(#[allow(dead_code, reason = "held, not used")] File);

/// Why a data folder cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another cluster uses it.
    #[error(
        "{} is in use by another windlass{}; stop it with `windlass down`, or use another --data-dir",
        folder.display(),
        holder.map_or_else(String::new, |pid| format!(" (process {pid})"))
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The process that has it, if it said so.
        holder: Option<u32>,
    },
    /// It cannot be written.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

impl FolderLock {
    /// Takes the folder, which must exist, or says who has it.
    pub fn take(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join("lock");
        let failed = |source| FolderError::Io {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(FolderError::InUse {
                    folder: folder.to_owned(),
                    holder: holder.trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(Self(file))
    }
}
