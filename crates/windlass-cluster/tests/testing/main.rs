//! What `TestCluster` promises to those who write tests with it.

mod crash;
mod determinism;
mod explore;
mod node_faults;
mod operators;
mod outside;
mod plain;
mod races;
mod requests;
mod rights;
mod seed;
mod time;

/// As many tests in a second as can be had: `make bench-tests` counts them.
#[global_allocator]
static ALLOCATOR: windlass::run::Allocator = windlass::run::Allocator;
