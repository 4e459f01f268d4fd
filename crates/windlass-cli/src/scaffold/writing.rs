//! Files on their way to the disk: all of them get there, or what was there before stays.
//!
//! Each is written beside its place first, so that a full disk or a folder that may not be written
//! to is noticed before anything counts; then each takes its place.

use std::fs;
use std::path::{Path, PathBuf};

use super::plan::Change;
use crate::error::{Result, at};

/// What was written so far. Unless it is finished, it is taken back when this value goes.
pub(super) struct Writing {
    root: PathBuf,
    /// Folders that were not there.
    folders: Vec<PathBuf>,
    staged: Vec<Staged>,
    finished: bool,
}

struct Staged {
    from: PathBuf,
    to: PathBuf,
    before: Option<String>,
    placed: bool,
}

impl Writing {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            folders: Vec::new(),
            staged: Vec::new(),
            finished: false,
        }
    }

    /// Writes a file beside its place.
    pub(super) fn stage(&mut self, path: &str, change: &Change) -> Result<()> {
        let to = self.root.join(path);
        let folder = to.parent().unwrap_or(&self.root).to_owned();
        self.folder(&folder)?;
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let from = folder.join(format!(".{name}.new"));
        self.staged.push(Staged {
            from: from.clone(),
            to,
            before: change.before.clone(),
            placed: false,
        });
        fs::write(&from, &change.after).map_err(at(&from))
    }

    /// Makes a folder, and remembers which ones above it are new.
    fn folder(&mut self, folder: &Path) -> Result<()> {
        let new: Vec<&Path> = folder
            .ancestors()
            .take_while(|above| !above.exists())
            .collect();
        for folder in new.into_iter().rev() {
            fs::create_dir(folder).map_err(at(folder))?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }

    /// Puts every file in its place.
    pub(super) fn finish(mut self) -> Result<()> {
        for staged in &mut self.staged {
            fs::rename(&staged.from, &staged.to).map_err(at(&staged.to))?;
            staged.placed = true;
        }
        self.finished = true;
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // Nothing can be done about what fails here; what failed before is being told.
        for staged in self.staged.iter().rev() {
            let _ = match (&staged.before, staged.placed) {
                (_, false) => fs::remove_file(&staged.from),
                (None, true) => fs::remove_file(&staged.to),
                (Some(text), true) => fs::write(&staged.to, text),
            };
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: Option<&str>, after: &str) -> Change {
        Change {
            before: before.map(str::to_owned),
            after: after.to_owned(),
        }
    }

    #[test]
    fn a_file_that_cannot_take_its_place_takes_all_others_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "mine\n").unwrap();
        // A folder stands where the last file should go.
        fs::create_dir_all(root.join("z/full")).unwrap();
        let mut writing = Writing::new(&root);
        writing
            .stage("a", &change(Some("mine\n"), "theirs\n"))
            .unwrap();
        writing.stage("new/deep/b", &change(None, "b\n")).unwrap();
        writing.stage("z", &change(None, "z\n")).unwrap();
        assert!(writing.finish().is_err());
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "mine\n");
        let mut left: Vec<_> = fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["a", "z"]);
    }

    #[test]
    fn what_is_not_finished_was_never_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        let mut writing = Writing::new(&root);
        writing.stage("src/lib.rs", &change(None, "")).unwrap();
        drop(writing);
        assert!(!root.exists());
    }
}
