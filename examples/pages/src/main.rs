//! The pages operator as a program.

windlass::main!(pages_operator::operator);
