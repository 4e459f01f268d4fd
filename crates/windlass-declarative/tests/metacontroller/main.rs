//! Metacontroller's contract, with hooks in this process and under virtual time.

mod composite;
mod decorator;
mod files;
mod hooks;
mod network;
mod rolling;
