//! The `kubectl` of envtest: the one on the path.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What a shell says of a program that is not there.
const NOT_FOUND: u8 = 127;

pub(super) fn main(args: &[OsString]) -> ExitCode {
    let Some(program) = find() else {
        eprintln!(
            "kubectl: there is no other kubectl on PATH; install one from https://kubernetes.io/docs/tasks/tools"
        );
        return ExitCode::from(NOT_FOUND);
    };
    let error = Command::new(&program).args(args).exec();
    eprintln!("kubectl: cannot start {}: {error}", program.display());
    ExitCode::FAILURE
}

/// The first that is not this program.
fn find() -> Option<PathBuf> {
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join("kubectl"));
    found.find(|program| std::fs::canonicalize(program).is_ok_and(|it| Some(it) != own))
}
