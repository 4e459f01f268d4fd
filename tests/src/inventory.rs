//! What is in a cluster, to be counted before and after.

use std::time::{Duration, Instant};

use crate::PATIENCE;
use crate::walkthrough::Terminal;

/// Every object that lasts, by kind and name. Kinds may come and go while they are looked at.
const LIST: &str = "for kind in $(kubectl api-resources --verbs=list -o name | grep -v -e ^events -e ^leases -e componentstatuses | sort -u); do \
     { kubectl get $kind -A -o name --ignore-not-found 2>/dev/null || true; } | sed \"s|^|$kind |\"; done | sort";

/// Every object in the cluster of the terminal's kubeconfig, a line each.
pub fn everything(terminal: &Terminal) -> Vec<String> {
    terminal.ask(LIST).lines().map(str::to_owned).collect()
}

/// Waits until exactly what was there before is there.
pub fn back_to(terminal: &Terminal, before: &[String]) {
    let limit = Instant::now() + PATIENCE;
    loop {
        let now = everything(terminal);
        if now == before {
            return;
        }
        let without = |all: &[String], some: &[String]| -> Vec<String> {
            let missing = all.iter().filter(|one| !some.contains(one));
            missing.cloned().collect()
        };
        assert!(
            Instant::now() < limit,
            "left behind: {:?}; taken: {:?}",
            without(&now, before),
            without(before, &now)
        );
        std::thread::sleep(Duration::from_millis(500));
    }
}
