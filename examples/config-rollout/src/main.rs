//! The example as a program.

windlass::main!(config_rollout_operator::operator);
