//! The program every operator binary is.

use std::process::ExitCode;

use crate::Operator;

/// Runs an operator binary: parses the command line and does what it says (`run`, `manifests`,
/// `install`, `uninstall`, `rbac`, `explain`, `version`).
pub fn main(operator: impl FnOnce() -> Operator) -> ExitCode {
    todo!()
}
