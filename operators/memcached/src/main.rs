//! The memcached operator as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::main(memcached_operator::operator)
}
