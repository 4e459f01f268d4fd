//! The operator against a simulated etcd, and the simulated etcd against the real one.

mod client;
mod database;
mod driver;
mod programs;
mod real;
mod replay;
mod rights;
mod scenarios;
mod vault;
mod world;
