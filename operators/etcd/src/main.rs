//! The etcd operator's program.

windlass::main!(etcd_operator::operator);
