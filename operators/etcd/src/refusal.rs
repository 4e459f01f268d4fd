//! What a spec asks for that this operator does not do.
//!
//! Before a cluster has begun nothing is started; one that runs is cared for as it is. Either way a
//! condition says what to change.

use crate::{
    decision::{Decision, Step},
    kind::VERSION,
    view::View,
};

/// The first and the last line of etcd that this operator knows.
const OLDEST: (u32, u32) = (3, 4);
const NEWEST: (u32, u32) = (3, 7);

/// What is refused, if something is.
pub(crate) fn of(view: &View<'_>) -> Option<Decision> {
    let running = &view.recorded.current_version;
    let asked = view.spec.version();
    let not_yet = [
        (
            view.spec.tls.is_some(),
            "TLSNotSupported",
            "spec.TLS",
            "encrypted connections",
        ),
        (
            view.spec.backup.is_some(),
            "BackupNotSupported",
            "spec.backup",
            "backups",
        ),
        (
            view.spec.restore.is_some(),
            "RestoreNotSupported",
            "spec.restore",
            "restoring",
        ),
    ];
    for (wanted, reason, field, what) in not_yet {
        if wanted {
            let message = format!(
                "{field} asks for {what}, which this operator does not do yet; remove {field}, and it goes on"
            );
            return Some(refuse(reason, message));
        }
    }
    let Some(line) = line_of(asked) else {
        let message = format!(
            "spec.version {asked:?} is no version of etcd such as {VERSION:?}; set it to one"
        );
        return Some(refuse("InvalidVersion", message));
    };
    if line < OLDEST || line > NEWEST {
        let message = format!(
            "etcd {asked} cannot be run: this operator runs {}.{} to {}.{}, whose members can join without a vote until they have caught up; set spec.version to one of these, such as {VERSION:?}",
            OLDEST.0, OLDEST.1, NEWEST.0, NEWEST.1
        );
        return Some(refuse("UnsupportedVersion", message));
    }
    if !running.is_empty() && running != asked {
        let message = format!(
            "the cluster runs etcd {running}, and changing it to {asked} is not done yet; set spec.version back to {running:?}"
        );
        return Some(refuse("UpgradeNotSupported", message));
    }
    None
}

fn refuse(reason: &'static str, message: String) -> Decision {
    Decision {
        step: Step::Stop,
        reason,
        message,
    }
}

/// The major and minor version.
pub(crate) fn line_of(version: &str) -> Option<(u32, u32)> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let mut parts = version.split('.').map(|part| {
        let digits = part.split('-').next().unwrap_or_default();
        digits.parse::<u32>().ok()
    });
    let (major, minor) = (parts.next()??, parts.next()??);
    match parts.next() {
        Some(None) => None,
        _ => Some((major, minor)),
    }
}
