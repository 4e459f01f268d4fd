//! The example as a program.

windlass::main!(reading_webhook_operator::operator);
