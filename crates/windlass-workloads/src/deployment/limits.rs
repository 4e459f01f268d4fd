//! How far a rolling update may stray from the wanted number of pods.
//!
//! `maxSurge` and `maxUnavailable` are numbers or percentages of the wanted replicas. A percentage
//! of surge rounds up and one of unavailability rounds down, so both err towards availability; if
//! both come to nought, one pod may be unavailable, or nothing could ever move.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What a Deployment asks for: the wanted replicas and the room around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The wanted number of pods.
    pub desired: i32,
    /// How many more than that may exist.
    pub max_surge: i32,
    /// How many fewer than that may be available.
    pub max_unavailable: i32,
}

impl Limits {
    /// The limits of a Deployment; Recreate has none, because it never runs two versions at once.
    pub(crate) fn of(deployment: &Deployment) -> Self {
        let desired = replicas(deployment);
        let Some(strategy) = deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.strategy.as_ref())
        else {
            return Self::rolling(desired, None, None);
        };
        if strategy.type_.as_deref() == Some("Recreate") {
            return Self {
                desired,
                max_surge: 0,
                max_unavailable: 0,
            };
        }
        let rolling = strategy.rolling_update.as_ref();
        Self::rolling(
            desired,
            rolling.and_then(|rolling| rolling.max_surge.as_ref()),
            rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
        )
    }

    /// The limits of a rolling update; what is not given is nought, as after the API's defaulting
    /// nothing is missing that its author left out.
    pub(crate) fn rolling(
        desired: i32,
        max_surge: Option<&IntOrString>,
        max_unavailable: Option<&IntOrString>,
    ) -> Self {
        let max_surge = scaled(max_surge, desired, Rounding::Up);
        let mut max_unavailable = scaled(max_unavailable, desired, Rounding::Down);
        if max_surge == 0 && max_unavailable == 0 {
            max_unavailable = 1;
        }
        Self {
            desired,
            max_surge,
            max_unavailable: max_unavailable.min(desired),
        }
    }

    /// The most pods that may exist.
    pub(crate) fn max_total(self) -> i32 {
        self.desired.saturating_add(self.max_surge)
    }

    /// The fewest pods that must be available.
    pub(crate) fn min_available(self) -> i32 {
        self.desired - self.max_unavailable
    }
}

/// The wanted replicas of a Deployment: one unless it says otherwise.
pub(crate) fn replicas(deployment: &Deployment) -> i32 {
    deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1)
}

#[derive(Clone, Copy)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// A number, or a percentage of `total`; the API admits no other string, and one that slips
/// through counts as nought.
pub(crate) fn scaled(value: Option<&IntOrString>, total: i32, rounding: Rounding) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => (*number).max(0),
        Some(IntOrString::String(text)) => {
            let percent: i64 = text
                .strip_suffix('%')
                .and_then(|percent| percent.parse().ok())
                .filter(|percent| *percent >= 0)
                .unwrap_or(0);
            let hundredfold = percent.saturating_mul(i64::from(total));
            let scaled = match rounding {
                Rounding::Up => hundredfold.saturating_add(99) / 100,
                Rounding::Down => hundredfold / 100,
            };
            i32::try_from(scaled).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStrategy};

    fn percent(value: i32) -> IntOrString {
        IntOrString::String(format!("{value}%"))
    }

    fn limits(desired: i32, surge: &IntOrString, unavailable: &IntOrString) -> (i32, i32) {
        let limits = Limits::rolling(desired, Some(surge), Some(unavailable));
        (limits.max_surge, limits.max_unavailable)
    }

    #[test]
    fn surge_rounds_up_and_unavailability_down() {
        assert_eq!(limits(3, &percent(25), &percent(25)), (1, 0));
        assert_eq!(limits(10, &percent(25), &percent(25)), (3, 2));
        assert_eq!(limits(4, &percent(25), &percent(25)), (1, 1));
        assert_eq!(limits(10, &percent(100), &percent(100)), (10, 10));
    }

    #[test]
    fn there_is_always_room_to_move() {
        assert_eq!(limits(3, &IntOrString::Int(0), &percent(1)), (0, 1));
        assert_eq!(
            limits(3, &IntOrString::Int(0), &IntOrString::Int(0)),
            (0, 1)
        );
    }

    #[test]
    fn no_more_than_all_can_be_unavailable() {
        assert_eq!(
            limits(3, &IntOrString::Int(1), &IntOrString::Int(10)),
            (1, 3)
        );
        assert_eq!(
            limits(0, &IntOrString::Int(1), &IntOrString::Int(1)),
            (1, 0)
        );
    }

    #[test]
    fn recreate_has_no_room() {
        let deployment = Deployment {
            spec: Some(DeploymentSpec {
                replicas: Some(5),
                strategy: Some(DeploymentStrategy {
                    type_: Some("Recreate".to_owned()),
                    rolling_update: None,
                }),
                ..DeploymentSpec::default()
            }),
            ..Deployment::default()
        };
        let limits = Limits::of(&deployment);
        assert_eq!((limits.max_total(), limits.min_available()), (5, 5));
    }
}
