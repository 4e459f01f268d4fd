//! How pods are spread over a cluster.

use super::affinity::label_keys;
use crate::validation::at::{At, Causes};
use crate::validation::label;

pub(super) fn check(spec: &At<'_, '_>, causes: &mut Causes) {
    for (index, constraint) in spec.items("topologySpreadConstraints").enumerate() {
        if constraint.int("maxSkew").unwrap_or_default() <= 0 {
            let skew = constraint.int("maxSkew").unwrap_or_default();
            causes.push(
                constraint
                    .child("maxSkew")
                    .invalid_value(skew, "must be greater than zero"),
            );
        }
        let (key, action) = (
            constraint.text("topologyKey"),
            constraint.text("whenUnsatisfiable"),
        );
        if key.is_empty() {
            causes.push(constraint.child("topologyKey").required("can not be empty"));
        }
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let allowed = ["DoNotSchedule", "ScheduleAnyway"];
            causes.push(
                constraint
                    .child("whenUnsatisfiable")
                    .not_supported(&allowed),
            );
        }
        let again = spec
            .items("topologySpreadConstraints")
            .skip(index + 1)
            .any(|other| {
                other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action
            });
        if again {
            let told = constraint.child("{topologyKey, whenUnsatisfiable}");
            causes.push(told.duplicate_value(format!("{{{key}, {action}}}")));
        }
        let domains = constraint.child("minDomains");
        if let Some(number) = domains.value.as_i64() {
            if number <= 0 {
                causes.push(domains.invalid("must be greater than zero"));
            }
            if action != "DoNotSchedule" {
                let why = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                causes.push(domains.invalid(&why));
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint
                .child(policy)
                .one_of_if_set(&["Honor", "Ignore"], causes);
        }
        label_keys(&constraint, causes);
        label::selector(&constraint.child("labelSelector"), causes);
    }
}
