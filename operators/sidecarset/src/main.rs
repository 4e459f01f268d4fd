//! The sidecarset operator as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::main(sidecarset_operator::operator)
}
