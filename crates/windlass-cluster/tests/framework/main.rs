//! What the framework promises, shown on a cluster.

mod adoption;
mod applying;
mod cache;
mod controller;
mod dry_run;
mod edge;
mod failure;
mod handles;
mod installing;
mod leader;
mod needless_writes;
mod observability;
mod own_writes;
mod stage;
mod stages;
mod template;
mod values;
mod weather;
