//! What reading an operator's metrics takes: the operator asks the API server who asks it and
//! whether they may, so it may ask; whoever holds the reader's role may read.

use k8s_openapi::{
    api::{
        core::v1::{Service, ServicePort, ServiceSpec},
        networking::v1::{
            NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
            NetworkPolicySpec,
        },
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use crate::{
    Description,
    role::{bound_to_account, named, selector},
};

/// The port of metrics, over TLS.
pub const PORT: u16 = 8443;
/// The port of `/healthz` and `/readyz`.
pub const PROBES_PORT: u16 = 8081;

fn called(description: &Description, suffix: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(format!("{}-{suffix}", description.name)),
        ..named(description)
    }
}

/// Lets the operator ask who reads its metrics, and whether they may.
pub fn auth_role(description: &Description, namespace: &str) -> (ClusterRole, ClusterRoleBinding) {
    let may_create = |group: &str, resource: &str| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: vec!["create".to_owned()],
        ..PolicyRule::default()
    };
    let metadata = called(description, "metrics-auth");
    let role = ClusterRole {
        metadata: metadata.clone(),
        rules: Some(vec![
            may_create("authentication.k8s.io", "tokenreviews"),
            may_create("authorization.k8s.io", "subjectaccessreviews"),
        ]),
        ..ClusterRole::default()
    };
    let binding = bound_to_account(description, namespace, metadata);
    (role, binding)
}

/// For those who read the metrics; bind it to the account of Prometheus.
pub fn reader_role(description: &Description) -> ClusterRole {
    ClusterRole {
        metadata: called(description, "metrics-reader"),
        rules: Some(vec![PolicyRule {
            non_resource_urls: Some(vec!["/metrics".to_owned()]),
            verbs: vec!["get".to_owned()],
            ..PolicyRule::default()
        }]),
        ..ClusterRole::default()
    }
}

/// The Service in front of the metrics.
pub fn service(description: &Description, namespace: &str) -> Service {
    Service {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            ..called(description, "metrics")
        },
        spec: Some(ServiceSpec {
            selector: Some(selector(description)),
            ports: Some(vec![ServicePort {
                name: Some("https".to_owned()),
                port: i32::from(PORT),
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::Int(i32::from(PORT))),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Who reaches the operator: anybody its probes, and namespaces labelled `metrics: enabled` its
/// metrics. `others` are ports that anybody may reach as well.
pub fn network_policy(description: &Description, namespace: &str, others: &[u16]) -> NetworkPolicy {
    let port = |port: u16| NetworkPolicyPort {
        port: Some(IntOrString::Int(i32::from(port))),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    };
    let open = std::iter::once(PROBES_PORT).chain(others.iter().copied());
    let readers = LabelSelector {
        match_labels: Some([("metrics".to_owned(), "enabled".to_owned())].into()),
        ..LabelSelector::default()
    };
    NetworkPolicy {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            ..named(description)
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(selector(description)),
                ..LabelSelector::default()
            }),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![
                NetworkPolicyIngressRule {
                    from: None,
                    ports: Some(open.map(port).collect()),
                },
                NetworkPolicyIngressRule {
                    from: Some(vec![NetworkPolicyPeer {
                        namespace_selector: Some(readers),
                        ..NetworkPolicyPeer::default()
                    }]),
                    ports: Some(vec![port(PORT)]),
                },
            ]),
            ..NetworkPolicySpec::default()
        }),
    }
}
