//! The kinds of admissionregistration.k8s.io.

mod cell;
mod mutating_policy;
mod mutating_policy_binding;
mod mutating_webhook;
pub(crate) mod policy;
mod validating_policy;
mod validating_policy_binding;
mod validating_webhook;
pub(crate) mod webhook;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "mutatingwebhookconfigurations" => &mutating_webhook::MutatingWebhookConfiguration,
        "validatingwebhookconfigurations" => &validating_webhook::ValidatingWebhookConfiguration,
        "validatingadmissionpolicies" => &validating_policy::ValidatingAdmissionPolicy,
        "mutatingadmissionpolicies" => &mutating_policy::MutatingAdmissionPolicy,
        "validatingadmissionpolicybindings" => {
            &validating_policy_binding::ValidatingAdmissionPolicyBinding
        }
        "mutatingadmissionpolicybindings" => {
            &mutating_policy_binding::MutatingAdmissionPolicyBinding
        }
        _ => return None,
    })
}
