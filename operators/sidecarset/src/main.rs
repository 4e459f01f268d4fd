//! The sidecarset operator as a program.

windlass::main!(sidecarset_operator::operator);
