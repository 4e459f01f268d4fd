//! Real processes: what the runtime does with them.

mod bench;
mod health;
mod life;
mod server;
mod survival;
