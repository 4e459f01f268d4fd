//! The memcached operator as a program.
fn main() {}
