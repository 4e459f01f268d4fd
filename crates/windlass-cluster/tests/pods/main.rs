//! What pods need, on a real cluster: each test has a cluster of its own in a folder of its own, and
//! every container in it is a real process of this machine. They are plain processes unless
//! `WINDLASS_RUNTIME` says sandbox; `scripts/sandboxed-pods` runs them so.

mod conversation;
mod ending;
mod environment;
mod faults;
mod health;
mod hooks;
mod kubectl;
mod leftovers;
mod life;
mod logs;
mod neighbours;
mod ports;
mod stage;
mod volumes;
