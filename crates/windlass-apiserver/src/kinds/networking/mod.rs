//! The kinds of networking.k8s.io.

pub(crate) mod addresses;
mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "ingresses" => &ingress::Ingress,
        "ingressclasses" => &ingress_class::IngressClass,
        "ipaddresses" => &ip_address::IPAddress,
        "networkpolicies" => &network_policy::NetworkPolicy,
        "servicecidrs" => &service_cidr::ServiceCIDR,
        _ => return None,
    })
}
