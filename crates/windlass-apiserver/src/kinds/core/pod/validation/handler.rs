//! What is run or asked of a container: probes and the hooks of its life.

use crate::names;
use crate::validation::at::{At, Causes, nonnegative};

/// Which probe it is: they differ in what may be set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    Liveness,
    Readiness,
    Startup,
}

/// The ways to run or ask, in the order they are looked at.
const HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

pub(super) fn probe(at: &At<'_, '_>, kind: Probe, causes: &mut Causes) {
    handler(at, None, causes);
    let numbers = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    nonnegative(at, &numbers, causes);
    let grace = at.child("terminationGracePeriodSeconds");
    if grace.value.as_i64().is_some_and(|seconds| seconds <= 0) {
        causes.push(grace.invalid("must be greater than 0"));
    }
    if kind == Probe::Readiness {
        if !grace.value.is_null() {
            causes.push(grace.invalid("must not be set for readinessProbes"));
        }
    } else if at.int("successThreshold") != Some(1) {
        causes.push(at.child("successThreshold").invalid("must be 1"));
    }
}

/// What is done after the start and before the end.
pub(super) fn lifecycle(at: &At<'_, '_>, grace: Option<i64>, causes: &mut Causes) {
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = at.get(hook) {
            handler(&hook, grace, causes);
        }
    }
}

/// Exactly one way to do it.
fn handler(at: &At<'_, '_>, grace: Option<i64>, causes: &mut Causes) {
    let mut given = HANDLERS
        .iter()
        .filter_map(|name| at.get(name).map(|way| (*name, way)));
    let Some((name, way)) = given.next() else {
        causes.push(at.required("must specify a handler type"));
        return;
    };
    match name {
        "exec" => {
            if way.list("command").is_empty() {
                causes.push(way.child("command").required(""));
            }
        }
        "httpGet" => http(&way, causes),
        "sleep" => sleep(&way, grace, causes),
        _ => port(&way.child("port"), causes),
    }
    for (_, another) in given {
        causes.push(another.forbidden("may not specify more than 1 handler type"));
    }
}

fn http(at: &At<'_, '_>, causes: &mut Causes) {
    if at.text("path").is_empty() {
        causes.push(at.child("path").required(""));
    }
    port(&at.child("port"), causes);
    if !matches!(at.text("scheme"), "HTTP" | "HTTPS") {
        causes.push(at.child("scheme").not_supported(&["HTTP", "HTTPS"]));
    }
    for header in at.items("httpHeaders") {
        let name = header.text("name");
        for why in names::header_errors(name) {
            causes.push(at.child("httpHeaders").invalid_value(name, &why));
        }
    }
}

fn sleep(at: &At<'_, '_>, grace: Option<i64>, causes: &mut Causes) {
    let seconds = at.int("seconds").unwrap_or_default();
    if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
        let why =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        causes.push(at.invalid_value(seconds, &why));
    }
}

/// A port by its number or by its name.
fn port(at: &At<'_, '_>, causes: &mut Causes) {
    match at.value.as_str() {
        Some(name) => at.complain(names::port_errors(name), causes),
        None => at.between(1, 65535, causes),
    }
}
