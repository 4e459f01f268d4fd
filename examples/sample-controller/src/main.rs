//! The sample controller as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::main(sample_controller::operator)
}
