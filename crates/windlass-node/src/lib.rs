//! Runs pods on this machine, and a simulated node for tests.
mod agent;
pub mod backoff;
pub mod env;
pub mod image;
pub mod log;
pub mod pod;
pub mod probe;
pub mod process;
mod registration;
mod runtime;
#[cfg(test)]
mod scratch;
pub mod simulated;
