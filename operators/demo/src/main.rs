//! The demo operator as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::main(demo_operator::operator)
}
