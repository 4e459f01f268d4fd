//! The usage operator as a program.

windlass::main!(usage_operator::operator);
