//! The pages operator as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::main(pages_operator::operator)
}
