//! What almost every operator uses.
//!
//! ```
//! use windlass::prelude::*;
//! ```

pub use crate::{
    Action, Context, Controller, Declare, Error, Observed, Operator, Reconciler, Result, Watched,
};
