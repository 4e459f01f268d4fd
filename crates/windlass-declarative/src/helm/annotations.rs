//! Annotations of a custom resource that change how its release is handled.

use std::time::Duration;

use serde_json::Value;

use super::duration;

/// What all of them begin with.
pub const PREFIX: &str = "helm.sdk.operatorframework.io/";
/// The finalizer that keeps a custom resource until its release is uninstalled.
pub const FINALIZER: &str = "helm.sdk.operatorframework.io/uninstall-release";
/// The finalizer of old operators.
pub const LEGACY_FINALIZER: &str = "uninstall-helm-release";
/// The label of every object of a release: the chart's name.
pub const CHART_LABEL: &str = "helm.sdk.operatorframework.io/chart";

/// What the annotations of a custom resource say.
///
/// `uninstall-wait` is not among them: a custom resource always stays until the objects of its
/// release are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// The original replaced objects in an upgrade. Nothing does that here: they are applied.
    pub upgrade_force: bool,
    /// Likewise when an upgrade is rolled back.
    pub rollback_force: bool,
    /// How often the release is reconciled although nothing changed.
    pub reconcile_period: Option<Duration>,
}

impl Annotations {
    /// Reads them. A flag that is no boolean counts as not given, a period that is none is an error.
    pub fn of(parent: &Value) -> Result<Self, String> {
        let annotation =
            |name: &str| parent["metadata"]["annotations"][format!("{PREFIX}{name}")].as_str();
        let flag =
            |name: &str, default: bool| annotation(name).and_then(boolean).unwrap_or(default);
        let reconcile_period = annotation("reconcile-period")
            .map(|text| {
                duration::parse(text)
                    .map_err(|why| format!("invalid annotation {PREFIX}reconcile-period: {why}"))
            })
            .transpose()?;
        Ok(Self {
            upgrade_force: flag("upgrade-force", false),
            rollback_force: flag("rollback-force", true),
            reconcile_period,
        })
    }
}

/// A boolean as Go reads it.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_are_read_with_defaults() {
        let none = Annotations::of(&json!({"metadata": {}})).unwrap();
        assert!(!none.upgrade_force && none.rollback_force);
        let annotations = json!({
            "helm.sdk.operatorframework.io/upgrade-force": "T",
            "helm.sdk.operatorframework.io/rollback-force": "0",
            "helm.sdk.operatorframework.io/reconcile-period": "5s",
        });
        let some = Annotations::of(&json!({"metadata": {"annotations": annotations}})).unwrap();
        assert!(some.upgrade_force && !some.rollback_force);
        assert_eq!(some.reconcile_period, Some(Duration::from_secs(5)));
    }
}
