//! The demo operator as a program.

windlass::main!(demo_operator::operator);
