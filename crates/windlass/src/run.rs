//! A running operator: how it is started, what it serves, who leads.
//!
//! `windlass::main` does all of this for a program. [`Operator::start`](crate::Operator::start)
//! and [`Operator::launch`](crate::Operator::launch) are for programs that embed an operator.

/// An allocator for the program: operators allocate much and in small pieces, for which the
/// system's is slow.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: windlass::run::Allocator = windlass::run::Allocator;
/// ```
#[cfg(feature = "allocator")]
pub use mimalloc::MiMalloc as Allocator;

pub use crate::helper::own_image;
#[cfg(feature = "cli")]
pub use crate::program::main_from;
#[cfg(feature = "serve")]
pub use crate::serve::{Endpoint, Readers};

pub use crate::{
    install::install,
    leader::LeaderElection,
    metrics::Metrics,
    operator::{DebugInfo, Launch, Running, TaskContext},
};
