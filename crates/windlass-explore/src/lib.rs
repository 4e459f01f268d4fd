//! The fault explorer: an operator is run again and again, each time with another fault that a real
//! cluster may have, and compared with the runs that nothing disturbed.
//!
//! The operator is anything that is given a kubeconfig: a process in any language ([`Subject::process`]),
//! in real time, or a function in this process ([`Subject::function`]), under virtual time. Each run
//! has an API server of its own, which begins as all others do, and whose edge sees every request
//! and every event on its way, and can lose, hold and refuse ([`plan::Act`]).
//!
//! How an exploration goes: [`scenario`] says what a user does; [`explore`] plays it undisturbed a
//! few times and learns what chance changes; `triggers` makes plans from the trace of the first; each
//! plan is played on a `world` of its own; `judge` compares, and what is found is played again, with a
//! pause in place of the fault, and with fewer faults and steps ([`shrink`]); [`report`] and [`html`]
//! say what was found.
//!
//! `windlass-cluster` shares plans, states and the [race detector](race) for its `TestCluster`.

mod edge;
pub mod explore;
pub mod fields;
pub mod html;
mod invariant;
pub mod judge;
pub mod names;
pub mod plan;
mod process;
pub mod race;
pub mod report;
pub mod scenario;
pub mod shrink;
pub mod state;
mod subject;
mod trace;
mod triggers;
mod world;

pub use subject::{Subject, Template};
pub use trace::{Happened, Record};
pub use world::{Base, Pace, Unusable};
