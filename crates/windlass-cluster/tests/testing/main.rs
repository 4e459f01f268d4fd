//! What `TestCluster` promises to those who write tests with it.

mod crash;
mod determinism;
mod operators;
mod requests;
mod rights;
mod time;
