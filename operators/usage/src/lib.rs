//! Usage reports: how much CPU, memory and storage pods and claims requested and used over a time.
//!
//! | step | where |
//! | --- | --- |
//! | which pods and volumes are counted, by what, and over which time | [`kind`] |
//! | when something is used, and how much | [`item`] |
//! | adding up over time, over restarts | [`account`] |
//! | a result as CSV and JSON | [`result`] |
//! | what pods use, where it is measured | [`metrics`] |
//! | the controller | [`controller`] |

mod account;
mod controller;
mod item;
pub mod kind;
mod metrics;
mod result;

use windlass::{Controller, Operator, object};

pub use self::kind::{Report, ReportSpec, ReportStatus};

/// The operator.
pub fn operator() -> Operator {
    let sample = object!(Report {
        metadata: { name: "usage-sample" },
        spec: { schedule: kind::Schedule::Hourly },
    });
    Operator::new("usage-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(Controller::of::<Report>().reconciler(controller::Reports::declare))
        .sample(&sample)
}
