//! What the framework promises, shown on a cluster.

mod cache;
mod controller;
mod failure;
mod installing;
mod leader;
mod needless_writes;
mod observability;
mod own_writes;
mod stage;
