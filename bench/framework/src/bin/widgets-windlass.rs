//! The widget operator on Windlass.

use std::process::ExitCode;

use bench_framework::{WORKERS, Widget, deployment_for, status_of};
use windlass::{Controller, Observed, Operator};

fn operator() -> Operator {
    Operator::new("widgets").controller(
        Controller::of::<Widget>()
            .concurrency(WORKERS.into())
            .dependent(deployment_for)
            .status(|widget: &Widget, observed: &Observed| status_of(widget, observed.first())),
    )
}

fn main() -> ExitCode {
    windlass::main(operator)
}
