//! What this program becomes when a node starts it again: the shim of a pod.
//!
//! Looked for before anything else is set up: a shim is small, and lives as long as its pod.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use windlass_cluster::shim;

/// Becomes what the first argument says, if it says so.
pub(crate) fn become_one() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next()?;
    if first == OsStr::new(shim::SUBCOMMAND) {
        return Some(shim::main(Path::new(&args.next()?)));
    }
    (first == OsStr::new(shim::HOLDER)).then(shim::hold_processes)
}
