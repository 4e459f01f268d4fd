//! What a run of a container is made from, as its shim finds it: `process.json`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::process::Child;

use super::place::Place;
use crate::runtime::{Launch, Note, Report, Reports, User};
use crate::shim::Ends;

const FILE: &str = "process.json";

/// A program, and where it is run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Description {
    /// As the pod calls it.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) place: Place,
}

impl Description {
    /// Puts it into the folder of a run.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        // Its environment holds secrets.
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(0o600);
        let mut file = options.open(folder.join(FILE))?;
        file.write_all(&serde_json::to_vec(self)?)
    }

    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let file = io::BufReader::new(File::open(folder.join(FILE))?);
        Ok(serde_json::from_reader(file)?)
    }

    /// Starts the program.
    pub(crate) fn spawn(&self, terminal: bool, stdin: bool) -> io::Result<(Child, Ends)> {
        self.place.spawn(&self.program, &self.args, terminal, stdin)
    }
}

/// The folder a container works in: the one it asks for where the machine has it, or one of its
/// own.
pub(super) fn folder_of(launch: &Launch, work: &Path, user: &User, reports: &Reports) -> PathBuf {
    let wanted = launch.container.working_dir.as_deref().map(Path::new);
    let reached = |path: &Path| path.is_dir() && user.uid.is_none_or(|uid| reaches(uid, path));
    let folder = [wanted.unwrap_or(work), work, Path::new("/")]
        .into_iter()
        .find(|path| reached(path))
        .unwrap_or(work);
    if launch.run == 0 && folder != wanted.unwrap_or(work) {
        let message = format!(
            "container {} works in {} instead of {}: its user cannot enter that folder of this \
             machine, and the process runtime gives containers no file system of their own",
            launch.container.name,
            folder.display(),
            wanted.unwrap_or(work).display()
        );
        reports.report(Report::Note(Note::warning("OtherWorkingDir", message)));
    }
    folder.to_owned()
}

/// Whether a user who is not root can enter a folder.
fn reaches(uid: u32, path: &Path) -> bool {
    uid == 0
        || path.ancestors().all(|folder| {
            std::fs::metadata(folder).is_ok_and(|found| {
                found.mode() & 0o001 != 0 || (found.uid() == uid && found.mode() & 0o100 != 0)
            })
        })
}
