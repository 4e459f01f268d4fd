//! What runs the pods of a cluster, and why.

use std::fmt;
use std::path::Path;

use windlass_node::sandbox;

/// The file of the data folder that says which runtime its objects were made for: the addresses of
/// Services are of that runtime's range.
const FILE: &str = "runtime";

/// What runs pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// Namespaces, a bridge and an OCI runtime.
    Sandbox,
    /// Plain child processes.
    Process,
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sandbox => "sandbox",
            Self::Process => "process",
        })
    }
}

/// A runtime, and why it is that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What runs pods.
    pub runtime: Runtime,
    /// Why, as a clause of a sentence.
    pub why: String,
}

/// Why a runtime cannot be had.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum RuntimeError {
    /// The machine lacks something.
    #[error("the sandbox runtime cannot be used: {0}; `--runtime process` needs nothing")]
    Lacking(String),
    /// The folder's objects are of the other.
    #[error(
        "{folder} was made with the {before} runtime, whose Services have other addresses: use \
         `--runtime {before}`, or another folder with `--data-dir`"
    )]
    Other {
        /// The data folder.
        folder: String,
        /// The runtime it was made with.
        before: Runtime,
    },
}

impl Runtime {
    fn of(name: &str) -> Option<Self> {
        match name.trim() {
            "sandbox" => Some(Self::Sandbox),
            "process" => Some(Self::Process),
            _ => None,
        }
    }

    /// The runtime that the objects in a data folder were made for.
    pub fn kept(folder: &Path) -> Option<Self> {
        Self::of(&std::fs::read_to_string(folder.join(FILE)).ok()?)
    }

    /// Notes that the objects in a data folder are for this runtime.
    pub(crate) fn keep(self, folder: &Path) -> std::io::Result<()> {
        std::fs::write(folder.join(FILE), self.to_string())
    }
}

impl Choice {
    /// The wanted runtime, or the strongest that the machine allows.
    pub(crate) fn make(
        wanted: Option<Runtime>,
        folder: &Path,
        lasting: bool,
    ) -> Result<Self, RuntimeError> {
        let kept = Runtime::kept(folder).filter(|_| lasting);
        let choice = decide(wanted, kept, sandbox::missing);
        match (choice, kept) {
            (Ok(choice), Some(before)) if choice.runtime != before => Err(RuntimeError::Other {
                folder: folder.display().to_string(),
                before,
            }),
            (choice, _) => choice,
        }
    }
}

fn decide(
    wanted: Option<Runtime>,
    kept: Option<Runtime>,
    missing: impl FnOnce() -> Option<String>,
) -> Result<Choice, RuntimeError> {
    let choice = |runtime, why: String| Ok(Choice { runtime, why });
    let asked = "as asked for".to_owned();
    match (wanted, kept) {
        (Some(Runtime::Process), _) => choice(Runtime::Process, asked),
        (Some(Runtime::Sandbox), _) => match missing() {
            None => choice(Runtime::Sandbox, asked),
            Some(what) => Err(RuntimeError::Lacking(what)),
        },
        (None, Some(Runtime::Process)) => choice(Runtime::Process, "as the last time".to_owned()),
        (None, kept) => match (missing(), kept) {
            (None, _) => choice(
                Runtime::Sandbox,
                "this is root on Linux, and an OCI runtime is installed".to_owned(),
            ),
            (Some(what), Some(_)) => Err(RuntimeError::Lacking(what)),
            (Some(what), None) => {
                choice(Runtime::Process, format!("sandboxes cannot be had: {what}"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_that_the_machine_allows() {
        let poor = || Some("it needs root".to_owned());
        let runtime = |wanted, kept, missing: fn() -> Option<String>| {
            decide(wanted, kept, missing).map(|choice| choice.runtime)
        };
        assert_eq!(runtime(None, None, || None), Ok(Runtime::Sandbox));
        assert_eq!(runtime(None, None, poor), Ok(Runtime::Process));
        assert_eq!(
            runtime(None, Some(Runtime::Process), || None),
            Ok(Runtime::Process)
        );
        let lacking = RuntimeError::Lacking("it needs root".to_owned());
        assert_eq!(
            runtime(Some(Runtime::Sandbox), None, poor),
            Err(lacking.clone())
        );
        assert_eq!(runtime(None, Some(Runtime::Sandbox), poor), Err(lacking));
        assert_eq!(
            runtime(Some(Runtime::Process), None, poor),
            Ok(Runtime::Process)
        );
    }
}
