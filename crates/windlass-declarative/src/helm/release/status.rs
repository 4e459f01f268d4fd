//! Where a revision is in its life.

/// Where a revision of a release is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Status {
    Unknown,
    Deployed,
    Uninstalled,
    Superseded,
    Failed,
    Uninstalling,
    PendingInstall,
    PendingUpgrade,
    PendingRollback,
}

const STATUSES: [(Status, &str); 9] = [
    (Status::Unknown, "unknown"),
    (Status::Deployed, "deployed"),
    (Status::Uninstalled, "uninstalled"),
    (Status::Superseded, "superseded"),
    (Status::Failed, "failed"),
    (Status::Uninstalling, "uninstalling"),
    (Status::PendingInstall, "pending-install"),
    (Status::PendingUpgrade, "pending-upgrade"),
    (Status::PendingRollback, "pending-rollback"),
];

impl Status {
    /// As Helm writes it.
    pub fn name(self) -> &'static str {
        let known = STATUSES.iter().find(|(status, _)| *status == self);
        known.map_or("unknown", |(_, name)| name)
    }

    pub(super) fn parse(name: &str) -> Self {
        let known = STATUSES.iter().find(|(_, known)| *known == name);
        known.map_or(Self::Unknown, |(status, _)| *status)
    }

    /// Whether an operation has begun and not ended.
    pub fn is_pending(self) -> bool {
        matches!(
            self,
            Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback
        )
    }
}
