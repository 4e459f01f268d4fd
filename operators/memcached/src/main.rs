//! The memcached operator as a program.

use std::process::ExitCode;

/// Operators allocate much and in small pieces, for which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: windlass::Allocator = windlass::Allocator;

fn main() -> ExitCode {
    windlass::main(memcached_operator::operator)
}
