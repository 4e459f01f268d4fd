//! The example as a program.

windlass::main!(per_namespace_operator::operator);
