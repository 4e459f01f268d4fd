//! The example as a program.

fn main() -> std::process::ExitCode {
    windlass::main(config_rollout_operator::operator)
}
