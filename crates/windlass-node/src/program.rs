//! Which program of this machine a container runs, and with what.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::env::Environment;
use crate::image::{self, ImageError, ImageTable};
use crate::pod::{Refusal, Termination};
use crate::runtime::{Launch, Note, Report, Reports};

/// A program that can be executed.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) argv: Vec<String>,
    pub(crate) environment: Environment,
    pub(crate) image_id: String,
    /// Whom the image says it runs as.
    pub(crate) user: Option<u32>,
}

/// A program of this machine.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) program: Program,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whether that is the program that the table of images names, and no other of its name.
    pub(crate) is_of_table: bool,
    /// What a person should know about it.
    pub(crate) note: Option<Note>,
}

/// What kept a program from being executed.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// No program stands for the image: an `ErrImagePull`.
    Image(ImageError),
    /// The container must not be run as it is: a `CreateContainerConfigError`.
    Configuration(String),
    /// The container's own command cannot be run.
    Execution(String),
}

/// What a program says its version is, once it has been asked.
type Version = Arc<OnceCell<Option<String>>>;

impl Obstacle {
    /// Tells the pod's worker.
    pub(crate) fn report(self, launch: &Launch, reports: &Reports, now: Timestamp) {
        let container = launch.container.name.clone();
        let refused = |refusal: Refusal, message: String| Report::Refused {
            container: container.clone(),
            refusal,
            message,
        };
        reports.report(match self {
            Self::Image(error) => refused(Refusal::Image, error.to_string()),
            Self::Configuration(message) => refused(Refusal::Configuration, message),
            Self::Execution(message) => Report::Exited {
                container,
                run: launch.run,
                termination: Termination::not_executed(message, now),
            },
        });
    }
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Execution(error.to_string())
    }
}

/// The programs of this machine.
#[derive(Debug)]
pub(crate) struct Programs {
    images: ImageTable,
    as_root: bool,
    /// Where the programs of the table are looked for.
    folders: String,
    /// The versions of programs, each asked for once.
    versions: Mutex<BTreeMap<PathBuf, Version>>,
}

impl Programs {
    pub(crate) fn new(images: ImageTable, as_root: bool, folders: String) -> Self {
        Self {
            images,
            as_root,
            folders,
            versions: Mutex::default(),
        }
    }

    /// The program of a container.
    pub(crate) async fn find(&self, launch: &Launch) -> Result<Found, Obstacle> {
        let image = launch.container.image.as_deref().unwrap_or_default();
        let invocation = self
            .images
            .invocation(&launch.container, self.as_root)
            .map_err(Obstacle::Image)?;
        let mut environment = launch.environment.clone();
        for (name, value) in invocation.program.iter().flat_map(|program| &program.env) {
            if environment.get(name).is_none() {
                environment.set(name.as_str(), environment.expand(value));
            }
        }
        let argv: Vec<String> = invocation
            .argv
            .iter()
            .map(|arg| environment.expand(arg))
            .collect();
        let first = argv.first().map(String::as_str).unwrap_or_default();
        let found = image::find(first, environment.get("PATH").unwrap_or_default());
        let path = match (found, invocation.program) {
            (Some(path), _) => path,
            (None, Some(program)) => return Err(Obstacle::Image(program.not_installed(image))),
            // A volume may bring it: whoever starts it finds out.
            (None, None) if first.contains('/') => PathBuf::from(first),
            (None, None) => {
                let message = format!("exec: \"{first}\": executable file not found in $PATH");
                return Err(Obstacle::Execution(message));
            }
        };
        let mut image_id = format!("host://{}", path.display());
        let mut note = None;
        // The node runs it to ask, as itself and on the machine. The container may have named any
        // file of that name, or a folder with one in its PATH: only the table's own is run.
        let named = invocation.program.map(|program| &program.program);
        let own = named.and_then(|program| image::find(program, &self.folders));
        let is_of_table = own.as_ref() == Some(&path);
        if let Some(program) = invocation.program.filter(|_| is_of_table)
            && let Some(version) = self.version(&path, &program.version_args).await
        {
            image_id = format!("{image_id}@{version}");
            let other = |tag: &&str| !image::satisfies(&version, tag);
            if let Some(tag) = invocation.tag.filter(other) {
                if program.exact {
                    return Err(Obstacle::Image(ImageError::WrongVersion {
                        image: image.to_owned(),
                        program: program.program.clone(),
                        version,
                    }));
                }
                let message = format!(
                    "image \"{image}\" has the tag {tag}, and {} of this machine is {version}",
                    program.program
                );
                note = Some(Note::warning("OtherVersion", message));
            }
        }
        // Another image is another container, also when the same program stands for both.
        if !image.is_empty() {
            image_id = format!("{image_id}#{image}");
        }
        let program = Program {
            argv,
            environment,
            image_id,
            user: invocation.program.and_then(|program| program.user),
        };
        Ok(Found {
            program,
            path,
            is_of_table,
            note,
        })
    }

    /// The version of a program, if it tells.
    async fn version(&self, program: &Path, args: &[String]) -> Option<String> {
        if args.is_empty() {
            return None;
        }
        let version = {
            let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
            versions.entry(program.to_owned()).or_default().clone()
        };
        // Whoever asks about the same program waits; others do not.
        version.get_or_init(|| ask(program, args)).await.clone()
    }
}

async fn ask(program: &Path, args: &[String]) -> Option<String> {
    let asked = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(Duration::from_secs(5), asked).await {
        Ok(Ok(output)) => {
            let said = [output.stdout, output.stderr].concat();
            image::version_in(&String::from_utf8_lossy(&said)).map(str::to_owned)
        }
        Ok(Err(_)) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests;
