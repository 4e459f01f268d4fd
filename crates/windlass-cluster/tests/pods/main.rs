//! What pods need, on a real cluster of processes: each test has a cluster of its own in a folder
//! of its own, and every container in it is a real process of this machine.

mod conversation;
mod ending;
mod environment;
mod faults;
mod health;
mod hooks;
mod life;
mod stage;
mod volumes;
