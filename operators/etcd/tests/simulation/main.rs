//! The operator against a simulated etcd, and the simulated etcd against the real one.

mod client;
mod driver;
mod real;
mod replay;
mod rights;
mod scenarios;
mod world;
