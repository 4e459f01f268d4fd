//! The sample controller as a program.

use std::process::ExitCode;

/// Operators allocate much and in small pieces, for which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: windlass::run::Allocator = windlass::run::Allocator;

fn main() -> ExitCode {
    windlass::main(sample_controller::operator)
}
