//! The memcached operator as a program.

windlass::main!(memcached_operator::operator);
