//! `/healthz`, `/livez` and `/readyz`: whether the server works, as a whole and check by check.
//!
//! The checks have kube-apiserver's names. What its start-up hooks stand for is done here before
//! the first request is served, so those pass; `etcd` is our store, and fails while the data folder
//! cannot be written.

use std::fmt::Write as _;

use http::StatusCode;

use super::{Answer, Query};
use crate::server::ApiServer;

/// Which paths have a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paths {
    All,
    /// `livez`, and `healthz`, which is older.
    Live,
    Ready,
}

/// All checks, in kube-apiserver's order.
const CHECKS: &[(Paths, &str)] = &[
    (Paths::All, "ping"),
    (Paths::All, "log"),
    (Paths::Live, "loopback-serving-certificate"),
    (Paths::All, "etcd"),
    (Paths::Ready, "etcd-readiness"),
    (Paths::Ready, "informer-sync"),
    (
        Paths::All,
        "poststarthook/start-apiserver-admission-initializer",
    ),
    (
        Paths::All,
        "poststarthook/generic-apiserver-start-informers",
    ),
    (
        Paths::All,
        "poststarthook/priority-and-fairness-config-consumer",
    ),
    (Paths::All, "poststarthook/priority-and-fairness-filter"),
    (
        Paths::All,
        "poststarthook/storage-object-count-tracker-hook",
    ),
    (Paths::All, "poststarthook/start-apiextensions-informers"),
    (Paths::All, "poststarthook/start-apiextensions-controllers"),
    (Paths::All, "poststarthook/crd-informer-synced"),
    (
        Paths::All,
        "poststarthook/start-system-namespaces-controller",
    ),
    (
        Paths::All,
        "poststarthook/peer-endpoint-reconciler-controller",
    ),
    (
        Paths::All,
        "poststarthook/start-cluster-authentication-info-controller",
    ),
    (
        Paths::All,
        "poststarthook/start-kube-apiserver-identity-lease-controller",
    ),
    (
        Paths::All,
        "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    ),
    (Paths::All, "poststarthook/storage-readiness"),
    (
        Paths::All,
        "poststarthook/start-legacy-token-tracking-controller",
    ),
    (
        Paths::All,
        "poststarthook/start-service-ip-repair-controllers",
    ),
    (Paths::All, "poststarthook/rbac/bootstrap-roles"),
    (
        Paths::All,
        "poststarthook/scheduling/bootstrap-system-priority-classes",
    ),
    (
        Paths::All,
        "poststarthook/priority-and-fairness-config-producer",
    ),
    (Paths::All, "poststarthook/bootstrap-controller"),
    (
        Paths::All,
        "poststarthook/start-kubernetes-service-cidr-controller",
    ),
    (Paths::All, "poststarthook/start-kube-aggregator-informers"),
    (
        Paths::All,
        "poststarthook/apiservice-status-local-available-controller",
    ),
    (
        Paths::All,
        "poststarthook/apiservice-status-remote-available-controller",
    ),
    (
        Paths::All,
        "poststarthook/apiservice-registration-controller",
    ),
    (Paths::All, "poststarthook/apiservice-discovery-controller"),
    (Paths::All, "poststarthook/kube-apiserver-autoregistration"),
    (Paths::All, "autoregister-completion"),
    (Paths::All, "poststarthook/apiservice-openapi-controller"),
    (Paths::All, "poststarthook/apiservice-openapiv3-controller"),
    (Paths::Ready, "shutdown"),
];
/// Those that our store stands for.
const STORE: &[&str] = &["etcd", "etcd-readiness"];

/// `/<path>`, or one of its checks.
pub(super) fn answer(server: &ApiServer, path: &str, check: &[&str], query: &Query) -> Answer {
    let checks = checks(path);
    if check.is_empty() {
        return all(server, path, &checks, query);
    }
    let check = check.join("/");
    if !checks.contains(&check.as_str()) {
        return Answer::no_such_path();
    }
    match failure(server, &check) {
        None => Answer::text(StatusCode::OK, "ok"),
        Some(why) => refusal(format!("internal server error: {why}\n")),
    }
}

/// The checks of a path, in order.
fn checks(path: &str) -> Vec<&'static str> {
    let others = if path == "readyz" {
        Paths::Ready
    } else {
        Paths::Live
    };
    let has = |paths: Paths| paths == Paths::All || paths == others;
    let checks = CHECKS.iter().filter(|(paths, _)| has(*paths));
    checks.map(|(_, check)| *check).collect()
}

fn all(server: &ApiServer, path: &str, checks: &[&str], query: &Query) -> Answer {
    let excluded = query.all("exclude");
    let is_excluded = |check: &str| excluded.iter().any(|excluded| excluded == check);
    let mut lines = String::new();
    let mut failed = false;
    for check in checks {
        let outcome = if is_excluded(check) {
            format!("[+]{check} excluded: ok\n")
        } else if failure(server, check).is_some() {
            failed = true;
            // Anyone may ask; why it fails is shown to those who may ask for the check itself.
            format!("[-]{check} failed: reason withheld\n")
        } else {
            format!("[+]{check} ok\n")
        };
        lines.push_str(&outcome);
    }
    let mut unknown: Vec<String> = excluded
        .iter()
        .filter(|excluded| !checks.contains(&excluded.as_str()))
        .map(|excluded| format!("{excluded:?}"))
        .collect();
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        let _ = writeln!(
            lines,
            "warn: some health checks cannot be excluded: no matches for {unknown}"
        );
    }
    if failed {
        return refusal(format!("{lines}{path} check failed\n"));
    }
    if query.contains("verbose") {
        return plain(format!("{lines}{path} check passed\n"));
    }
    Answer::text(StatusCode::OK, "ok")
}

/// Why a check fails.
fn failure(server: &ApiServer, check: &str) -> Option<String> {
    let why = server
        .store()
        .refusal()
        .filter(|_| STORE.contains(&check))?;
    Some(why.to_string())
}

fn refusal(text: String) -> Answer {
    plain(text).with_code(StatusCode::INTERNAL_SERVER_ERROR)
}

fn plain(text: String) -> Answer {
    Answer::bytes("text/plain; charset=utf-8", text.into())
}
