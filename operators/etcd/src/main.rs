//! The etcd operator's program.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::main(etcd_operator::operator)
}
