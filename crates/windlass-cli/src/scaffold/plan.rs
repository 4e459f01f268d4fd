//! A [`Plan`]: everything a command is going to write, made before anything is written.
//!
//! Either all of it is written or none. A file that is there and is not what would be written
//! belongs to the person who changed it: the plan is refused, and the difference shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use similar::TextDiff;

use super::edit::Refusal;
use super::writing::Writing;
use crate::error::{Error, Result, at};
use crate::interrupt;

/// What is going to be written below a folder.
pub(crate) struct Plan {
    root: PathBuf,
    files: BTreeMap<String, Change>,
    conflicts: Vec<String>,
}

pub(super) struct Change {
    pub(super) before: Option<String>,
    pub(super) after: String,
}

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    New(String),
    Changed(String),
}

impl Written {
    /// Which file.
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::New(path) | Self::Changed(path) => path,
        }
    }
}

impl Plan {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: BTreeMap::new(),
            conflicts: Vec::new(),
        }
    }

    /// A file that is to be as given.
    pub(crate) fn create(&mut self, path: impl Into<String>, text: String) -> Result<()> {
        let path = path.into();
        match self.read(&path)? {
            Some(found) if found == text => {}
            Some(found) => {
                let diff = TextDiff::from_lines(&found, &text)
                    .unified_diff()
                    .context_radius(1)
                    .header(
                        &format!("{path} (as it is)"),
                        &format!("{path} (as it would be)"),
                    )
                    .to_string();
                self.conflicts.push(diff);
            }
            None => {
                self.files.insert(
                    path,
                    Change {
                        before: None,
                        after: text,
                    },
                );
            }
        }
        Ok(())
    }

    /// A file that the command keeps for itself: written whatever was there.
    pub(crate) fn keep(&mut self, path: impl Into<String>, text: String) -> Result<()> {
        let path = path.into();
        let before = self.read(&path)?;
        if before.as_ref() != Some(&text) {
            self.files.insert(
                path,
                Change {
                    before,
                    after: text,
                },
            );
        }
        Ok(())
    }

    /// A change to a file that is there.
    pub(crate) fn edit(
        &mut self,
        path: impl Into<String>,
        edit: impl FnOnce(&str) -> Result<String, Refusal>,
    ) -> Result<()> {
        let path = path.into();
        let planned = self.files.remove(&path);
        let (before, text) = if let Some(change) = planned {
            (change.before, change.after)
        } else {
            let found = self.read(&path)?.ok_or_else(|| {
                Error::Other(format!(
                    "{} is missing: is this a project that `windlass init` made?",
                    self.root.join(&path).display()
                ))
            })?;
            (Some(found.clone()), found)
        };
        let after = edit(&text).map_err(|refusal| {
            Error::Other(format!(
                "cannot add to {}: {refusal}; nothing was written",
                self.root.join(&path).display()
            ))
        })?;
        if before.as_ref() != Some(&after) {
            self.files.insert(path, Change { before, after });
        }
        Ok(())
    }

    /// Lays out the code among the planned files, where rustfmt is installed.
    pub(crate) fn format(&mut self) {
        for (path, change) in &mut self.files {
            if Path::new(path)
                .extension()
                .is_some_and(|extension| extension == "rs")
                && let Some(text) = super::rustfmt::format(&change.after)
            {
                change.after = text;
            }
        }
        self.files
            .retain(|_, change| change.before.as_ref() != Some(&change.after));
    }

    /// Writes everything, or nothing: whatever fails, and whenever a person presses Ctrl-C.
    pub(crate) fn write(self) -> Result<Vec<Written>> {
        if !self.conflicts.is_empty() {
            return Err(Error::Conflict(self.conflicts.join("\n")));
        }
        let _held = interrupt::hold();
        let mut writing = Writing::new(&self.root);
        for (path, change) in self.in_order() {
            writing.stage(path, change)?;
        }
        writing.finish()?;
        let written = self
            .files
            .into_iter()
            .map(|(path, change)| match change.before {
                None => Written::New(path),
                Some(_) => Written::Changed(path),
            });
        Ok(written.collect())
    }

    /// What the project is said to have is written last: a command that was killed in between can
    /// be given again.
    fn in_order(&self) -> impl Iterator<Item = (&String, &Change)> {
        let is_last = |path: &String| path == crate::project::FILE;
        let others = self.files.iter().filter(move |(path, _)| !is_last(path));
        others.chain(self.files.iter().filter(move |(path, _)| is_last(path)))
    }

    fn read(&self, path: &str) -> Result<Option<String>> {
        let path = self.root.join(path);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
        }
    }
}

/// What was written, for programs.
pub(crate) fn facts(written: &[Written]) -> Value {
    let fact = |one: &Written| match one {
        Written::New(path) => json!({"path": path, "change": "new"}),
        Written::Changed(path) => json!({"path": path, "change": "changed"}),
    };
    written.iter().map(fact).collect()
}

/// What was written, a line a file.
pub(crate) fn describe(written: &[Written]) -> String {
    let mut text = String::new();
    for one in written {
        let (what, path) = match one {
            Written::New(path) => ("new    ", path),
            Written::Changed(path) => ("changed", path),
        };
        let _ = writeln!(text, "  {what}  {path}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_changed_is_shown_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "mine\n").unwrap();
        let mut plan = Plan::new(folder.path());
        plan.create("a", "new\n".to_owned()).unwrap();
        plan.create("b", "theirs\n".to_owned()).unwrap();
        let message = plan.write().unwrap_err().to_string();
        assert!(message.contains("-mine\n+theirs"), "{message}");
        assert!(!folder.path().join("a").exists());
        assert_eq!(
            fs::read_to_string(folder.path().join("b")).unwrap(),
            "mine\n"
        );
    }

    #[test]
    fn the_same_again_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let again = || {
            let mut plan = Plan::new(folder.path());
            plan.create("deep/a", "x\n".to_owned()).unwrap();
            plan.keep("PROJECT", "y\n".to_owned()).unwrap();
            plan.write().unwrap()
        };
        assert_eq!(again().len(), 2);
        assert_eq!(again(), []);
        let left: Vec<_> = fs::read_dir(folder.path().join("deep")).unwrap().collect();
        assert_eq!(left.len(), 1, "no staged file is left");
    }
}
