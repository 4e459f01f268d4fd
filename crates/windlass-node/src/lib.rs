//! Runs pods on this machine, and a simulated node for tests.
pub mod backoff;
pub mod env;
pub mod image;
pub mod log;
pub mod pod;
pub mod probe;
#[cfg(test)]
mod scratch;
