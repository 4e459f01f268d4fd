//! The example as a program.

fn main() -> std::process::ExitCode {
    windlass::main(external_api_operator::operator)
}
