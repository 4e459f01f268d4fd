//! Which rules an object stands under, for the kinds beside workloads: a row each.

use serde_json::Value;

use super::{
    admission_policy, api_service, certificate, claim, data, device, endpoints, flow, ingress,
    namespace, network_policy, service, service_address, storage, volume, webhook,
};
use crate::status::Cause;

/// What is wrong with an object by itself.
type Check = fn(&Value, &mut Vec<Cause>);
/// What is wrong with a change, given the new and the old object.
type Change = fn(&Value, &Value, &mut Vec<Cause>);

/// The rules of one kind.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) check: Check,
    /// What may not change; told after what is wrong with the new object by itself.
    pub(super) update: Change,
    /// Whether it is told before.
    pub(super) update_first: bool,
    /// Whether it says all there is to say about a change.
    pub(super) update_only: bool,
    /// What is wrong with a change of the status.
    pub(super) status: Change,
}

const fn rules(check: Check, update: Change) -> Rules {
    Rules {
        check,
        update,
        update_first: false,
        update_only: false,
        status: anything,
    }
}

const fn with_status(mut rules: Rules, status: Change) -> Rules {
    rules.status = status;
    rules
}

const fn update_first(mut rules: Rules) -> Rules {
    rules.update_first = true;
    rules
}

const fn instead(mut rules: Rules) -> Rules {
    rules.update_only = true;
    rules
}

/// A change that may be anything.
fn anything(_: &Value, _: &Value, _: &mut Vec<Cause>) {}

/// The rules of a kind, if it is one of these.
pub(super) fn of(group: &str, plural: &str) -> Option<Rules> {
    Some(match (group, plural) {
        ("", "configmaps") => update_first(rules(data::check_config_map, data::check_frozen)),
        ("", "secrets") => update_first(rules(data::check_secret, data::check_secret_update)),
        ("", "namespaces") => {
            with_status(rules(namespace::check, anything), namespace::check_status)
        }
        ("", "services") => update_first(with_status(
            rules(
                |service, causes| service::check(service, None, causes),
                service::check_update,
            ),
            service::check_status,
        )),
        ("", "endpoints") => rules(endpoints::check, anything),
        ("", "persistentvolumes") => rules(volume::check, volume::check_update),
        ("", "persistentvolumeclaims") => with_status(
            rules(claim::check, claim::check_update),
            claim::check_status,
        ),
        ("discovery.k8s.io", "endpointslices") => {
            instead(rules(endpoints::check_slice, endpoints::check_slice_update))
        }
        ("storage.k8s.io", "storageclasses") => {
            rules(storage::check_class, storage::check_class_update)
        }
        ("storage.k8s.io", "csidrivers") => {
            rules(storage::check_driver, storage::check_driver_update)
        }
        ("storage.k8s.io", "csinodes") => rules(storage::check_node, storage::check_node_update),
        ("storage.k8s.io", "volumeattachments") => {
            rules(storage::check_attachment, storage::check_attachment_update)
        }
        ("storage.k8s.io", "csistoragecapacities") => {
            rules(storage::check_capacity, storage::check_capacity_update)
        }
        ("storage.k8s.io", "volumeattributesclasses") => update_first(rules(
            storage::check_attributes,
            storage::check_attributes_update,
        )),
        ("networking.k8s.io", "ingresses") => {
            with_status(rules(ingress::check, anything), ingress::check_status)
        }
        ("networking.k8s.io", "ingressclasses") => {
            update_first(rules(ingress::check_class, ingress::check_class_update))
        }
        ("networking.k8s.io", "networkpolicies") => rules(network_policy::check, anything),
        ("networking.k8s.io", "ipaddresses") => rules(
            service_address::check_address,
            service_address::check_address_update,
        ),
        ("networking.k8s.io", "servicecidrs") => rules(
            service_address::check_range,
            service_address::check_range_update,
        ),
        ("admissionregistration.k8s.io", plural) => match plural {
            "mutatingwebhookconfigurations" => rules(webhook::check_mutating, anything),
            "validatingwebhookconfigurations" => rules(webhook::check_validating, anything),
            "validatingadmissionpolicies" => rules(admission_policy::check_validating, anything),
            "mutatingadmissionpolicies" => rules(admission_policy::check_mutating, anything),
            "validatingadmissionpolicybindings" => {
                rules(admission_policy::check_validating_binding, anything)
            }
            "mutatingadmissionpolicybindings" => {
                rules(admission_policy::check_mutating_binding, anything)
            }
            _ => return None,
        },
        ("certificates.k8s.io", "certificatesigningrequests") => with_status(
            rules(certificate::check, anything),
            certificate::check_status,
        ),
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => rules(flow::check_schema, anything),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            rules(flow::check_level, anything)
        }
        ("apiregistration.k8s.io", "apiservices") => rules(api_service::check, anything),
        ("resource.k8s.io", plural) => match plural {
            "deviceclasses" => rules(device::check_class, anything),
            // What cannot be changed is not looked at again.
            "resourceclaims" => instead(rules(device::check_claim, device::check_spec_update)),
            "resourceclaimtemplates" => rules(device::check_template, device::check_spec_update),
            "resourceslices" => rules(device::check_slice, device::check_slice_update),
            _ => return None,
        },
        _ => return None,
    })
}
