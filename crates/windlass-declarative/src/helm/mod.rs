//! Operators made of Helm charts.
//!
//! An object of the operator's kind is a release: its spec are the values of a chart. What
//! operator-sdk's Helm operator reads and writes is read and written here too: `watches.yaml`,
//! annotations, conditions, the finalizer; and releases are stored as Helm stores them.
//!
//! | module | what |
//! | --- | --- |
//! | [`watches`] | `watches.yaml` |
//! | [`values`] | the values of an object's release |
//! | [`stages`] | what a chart became, in the order in which it is applied |
//! | [`plan`](mod@plan) | what to do for a release now |
//! | [`release`] | releases as Helm stores them |
//! | [`annotations`], [`status`] | what an object says of its release, and what is said of it |
//! | [`definition`] | the CRD of a chart |
//! | [`rights`] | the rights that a chart needs |
//! | [`seed`](mod@seed) | random values that stay |

pub mod annotations;
mod capabilities;
mod comments;
pub mod definition;
pub mod duration;
mod lookups;
pub mod operator;
pub mod plan;
pub mod release;
mod renderer;
pub mod rights;
pub mod seed;
pub mod stages;
pub mod status;
mod store;
mod stored_chart;
pub mod values;
pub mod watches;
