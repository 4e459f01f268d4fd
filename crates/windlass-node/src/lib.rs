//! Runs pods on this machine, and a simulated node for tests.
pub mod backoff;
pub mod env;
pub mod image;
pub mod pod;
pub mod probe;
