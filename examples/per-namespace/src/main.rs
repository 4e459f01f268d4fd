//! The example as a program.

fn main() -> std::process::ExitCode {
    windlass::main(per_namespace_operator::operator)
}
