//! Taints, and the tolerations that pods have for them.

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};

/// Whether the toleration covers the taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect_matches = effect.is_empty() || effect == taint.effect;
    // An empty key with Exists tolerates everything.
    let key_matches = key.is_empty() || key == taint.key;
    let value_matches = match toleration.operator.as_deref() {
        Some("Exists") => true,
        _ => {
            !key.is_empty()
                && toleration.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default()
        }
    };
    effect_matches && key_matches && value_matches
}

/// The pod's tolerations.
pub(crate) fn of_pod(pod: &Pod) -> &[Toleration] {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.tolerations.as_deref())
        .unwrap_or_default()
}

/// The node's taints.
pub(crate) fn taints(node: &Node) -> &[Taint] {
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default()
}

/// The first taint with one of these effects that is not tolerated.
pub(crate) fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    let mut serious = taints
        .iter()
        .filter(|taint| effects.contains(&taint.effect.as_str()));
    serious.find(|taint| !tolerations.iter().any(|one| tolerates(one, taint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        Taint {
            key: key.to_owned(),
            value: Some(value.to_owned()),
            effect: effect.to_owned(),
            ..Taint::default()
        }
    }

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Toleration {
            key: some(key),
            operator: some(operator),
            value: some(value),
            effect: some(effect),
            toleration_seconds: None,
        }
    }

    #[test]
    fn key_value_and_effect_have_to_match() {
        let gpu = taint("gpu", "a", "NoSchedule");
        assert!(tolerates(
            &toleration("gpu", "Equal", "a", "NoSchedule"),
            &gpu
        ));
        assert!(tolerates(&toleration("gpu", "", "a", ""), &gpu));
        assert!(tolerates(&toleration("gpu", "Exists", "", ""), &gpu));
        assert!(tolerates(&toleration("", "Exists", "", ""), &gpu));
        assert!(!tolerates(&toleration("gpu", "Equal", "b", ""), &gpu));
        assert!(!tolerates(
            &toleration("gpu", "Exists", "", "NoExecute"),
            &gpu
        ));
        assert!(!tolerates(&toleration("", "", "", ""), &gpu));
    }

    #[test]
    fn only_the_effects_asked_for_matter() {
        let taints = [
            taint("a", "", "PreferNoSchedule"),
            taint("b", "", "NoExecute"),
        ];
        assert_eq!(untolerated(&taints, &[], &["NoSchedule"]), None);
        assert_eq!(untolerated(&taints, &[], &["NoExecute"]), Some(&taints[1]));
    }
}
