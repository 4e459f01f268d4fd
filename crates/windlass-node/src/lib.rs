//! Runs pods on this machine, and a simulated node for tests.
