//! The sample controller as a program.

windlass::main!(sample_controller::operator);
