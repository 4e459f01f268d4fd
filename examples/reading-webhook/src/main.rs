//! The example as a program.

fn main() -> std::process::ExitCode {
    windlass::main(reading_webhook_operator::operator)
}
