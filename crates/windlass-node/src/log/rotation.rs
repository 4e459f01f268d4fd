//! Rotation: a container that writes without end must not fill the disk.
//!
//! As kubelet does by default, a log that has reached 10 MiB is put aside as `<run>.log.1`, those put
//! aside before get the next number, and no more than five files are kept. `kubectl logs` reads the
//! present file; who follows a log goes from file to file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How large a file becomes.
pub(super) const LARGEST: u64 = 10 * 1024 * 1024;
/// How many files are kept beside the present one.
const KEPT: u32 = 4;

/// Where a log is that was put aside, by how many came after it.
fn aside(log: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return log.to_owned();
    }
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Puts the present file aside.
pub(super) fn rotate(log: &Path) -> io::Result<()> {
    for number in (0..KEPT).rev() {
        match fs::rename(aside(log, number), aside(log, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes a log with all that was put aside.
pub(crate) fn remove(log: &Path) {
    for number in 0..=KEPT {
        let _ = fs::remove_file(aside(log, number));
    }
}

/// The file that came after the one with this inode; the oldest when that is gone.
pub(super) fn after(log: &Path, inode: u64) -> PathBuf {
    use std::os::unix::fs::MetadataExt as _;
    let found = |number: &u32| fs::metadata(aside(log, *number)).map(|file| file.ino());
    let known = (1..=KEPT).find(|number| found(number).is_ok_and(|other| other == inode));
    let next = known.map(|number| number - 1);
    let oldest = || (1..=KEPT).rev().find(|number| found(number).is_ok());
    aside(log, next.or_else(oldest).unwrap_or_default())
}
