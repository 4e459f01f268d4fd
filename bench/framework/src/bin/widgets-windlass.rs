//! The widget operator on Windlass.

use std::process::ExitCode;

use bench_framework::{WORKERS, Widget, deployment_for, status_of};
use windlass::{Controller, Observed, Operator};

/// Operators allocate much and in small pieces, for which the system's allocator is slow.
#[global_allocator]
static ALLOCATOR: windlass::run::Allocator = windlass::run::Allocator;

fn operator() -> Operator {
    Operator::new("widgets").controller(
        Controller::of::<Widget>()
            .concurrency(WORKERS.into())
            .dependent(deployment_for)
            .status(|widget: &Widget, observed: &Observed| {
                status_of(widget, observed.owned().next())
            }),
    )
}

fn main() -> ExitCode {
    windlass::main(operator)
}
