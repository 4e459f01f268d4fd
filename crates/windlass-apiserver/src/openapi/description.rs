//! What types and fields are for, in Kubernetes' own words: what `kubectl explain` prints.
//!
//! The texts are not in this repository: the crate `k8s-openapi` has them in the schemas of its
//! types. They are large and asked for by few, so they are gathered when a document is made, and
//! only for the group and version that it is about.

use k8s_openapi::api::{
    admissionregistration, apps, authentication, authorization, autoscaling, batch, certificates,
    coordination, core, discovery, events, flowcontrol, networking, node, policy, rbac, resource,
    scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// Adds the schemas of some types, and of all they refer to.
type Add = fn(&mut SchemaGenerator);

/// The types of each group and version; the rest is what these refer to.
const TYPES: &[(&str, &str, &[Add])] = &[
    (
        "",
        "v1",
        &[
            add::<core::v1::Binding>,
            add::<core::v1::ComponentStatus>,
            add::<core::v1::ConfigMap>,
            add::<core::v1::Endpoints>,
            add::<core::v1::Event>,
            add::<core::v1::LimitRange>,
            add::<core::v1::Namespace>,
            add::<core::v1::Node>,
            add::<core::v1::PersistentVolume>,
            add::<core::v1::PersistentVolumeClaim>,
            add::<core::v1::Pod>,
            add::<core::v1::PodTemplate>,
            add::<core::v1::ReplicationController>,
            add::<core::v1::ResourceQuota>,
            add::<core::v1::Secret>,
            add::<core::v1::Service>,
            add::<core::v1::ServiceAccount>,
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        &[
            add::<admissionregistration::v1::MutatingAdmissionPolicy>,
            add::<admissionregistration::v1::MutatingAdmissionPolicyBinding>,
            add::<admissionregistration::v1::MutatingWebhookConfiguration>,
            add::<admissionregistration::v1::ValidatingAdmissionPolicy>,
            add::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>,
            add::<admissionregistration::v1::ValidatingWebhookConfiguration>,
        ],
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        &[add::<apiextensions::v1::CustomResourceDefinition>],
    ),
    (
        "apiregistration.k8s.io",
        "v1",
        &[add::<apiregistration::v1::APIService>],
    ),
    (
        "apps",
        "v1",
        &[
            add::<apps::v1::ControllerRevision>,
            add::<apps::v1::DaemonSet>,
            add::<apps::v1::Deployment>,
            add::<apps::v1::ReplicaSet>,
            add::<apps::v1::StatefulSet>,
        ],
    ),
    (
        "authentication.k8s.io",
        "v1",
        &[
            add::<authentication::v1::SelfSubjectReview>,
            add::<authentication::v1::TokenRequest>,
            add::<authentication::v1::TokenReview>,
        ],
    ),
    (
        "authorization.k8s.io",
        "v1",
        &[
            add::<authorization::v1::LocalSubjectAccessReview>,
            add::<authorization::v1::SelfSubjectAccessReview>,
            add::<authorization::v1::SelfSubjectRulesReview>,
            add::<authorization::v1::SubjectAccessReview>,
        ],
    ),
    (
        "autoscaling",
        "v1",
        &[
            add::<autoscaling::v1::HorizontalPodAutoscaler>,
            add::<autoscaling::v1::Scale>,
        ],
    ),
    (
        "autoscaling",
        "v2",
        &[add::<autoscaling::v2::HorizontalPodAutoscaler>],
    ),
    (
        "batch",
        "v1",
        &[add::<batch::v1::CronJob>, add::<batch::v1::Job>],
    ),
    (
        "certificates.k8s.io",
        "v1",
        &[add::<certificates::v1::CertificateSigningRequest>],
    ),
    (
        "coordination.k8s.io",
        "v1",
        &[add::<coordination::v1::Lease>],
    ),
    (
        "discovery.k8s.io",
        "v1",
        &[add::<discovery::v1::EndpointSlice>],
    ),
    ("events.k8s.io", "v1", &[add::<events::v1::Event>]),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        &[
            add::<flowcontrol::v1::FlowSchema>,
            add::<flowcontrol::v1::PriorityLevelConfiguration>,
        ],
    ),
    (
        "networking.k8s.io",
        "v1",
        &[
            add::<networking::v1::IPAddress>,
            add::<networking::v1::Ingress>,
            add::<networking::v1::IngressClass>,
            add::<networking::v1::NetworkPolicy>,
            add::<networking::v1::ServiceCIDR>,
        ],
    ),
    ("node.k8s.io", "v1", &[add::<node::v1::RuntimeClass>]),
    (
        "policy",
        "v1",
        &[
            add::<policy::v1::Eviction>,
            add::<policy::v1::PodDisruptionBudget>,
        ],
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        &[
            add::<rbac::v1::ClusterRole>,
            add::<rbac::v1::ClusterRoleBinding>,
            add::<rbac::v1::Role>,
            add::<rbac::v1::RoleBinding>,
        ],
    ),
    (
        "resource.k8s.io",
        "v1",
        &[
            add::<resource::v1::DeviceClass>,
            add::<resource::v1::ResourceClaim>,
            add::<resource::v1::ResourceClaimTemplate>,
            add::<resource::v1::ResourceSlice>,
        ],
    ),
    (
        "scheduling.k8s.io",
        "v1",
        &[add::<scheduling::v1::PriorityClass>],
    ),
    (
        "storage.k8s.io",
        "v1",
        &[
            add::<storage::v1::CSIDriver>,
            add::<storage::v1::CSINode>,
            add::<storage::v1::CSIStorageCapacity>,
            add::<storage::v1::StorageClass>,
            add::<storage::v1::VolumeAttachment>,
            add::<storage::v1::VolumeAttributesClass>,
        ],
    ),
];

/// What every group uses.
const OF_ALL: &[Add] = &[
    add::<meta::APIGroupList>,
    add::<meta::APIResourceList>,
    add::<meta::APIVersions>,
    add::<meta::DeleteOptions>,
    add::<meta::ListMeta>,
    add::<meta::ObjectMeta>,
    add::<meta::Patch>,
    add::<meta::Status>,
    add::<meta::WatchEvent<RawExtension>>,
];

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

/// The descriptions of some types.
pub(super) struct Descriptions(Map<String, Value>);

/// The descriptions of the types of one group and version, and of what they use.
pub(super) fn of(group: &str, version: &str) -> Descriptions {
    gather(|(of_group, of_version, _)| *of_group == group && *of_version == version)
}

/// The descriptions of all types.
pub(super) fn of_all() -> Descriptions {
    gather(|_| true)
}

fn gather(wanted: impl Fn(&(&str, &str, &[Add])) -> bool) -> Descriptions {
    let mut generator = SchemaGenerator::default();
    let types = TYPES.iter().filter(|types| wanted(types));
    for add in types.flat_map(|(_, _, adds)| *adds).chain(OF_ALL) {
        add(&mut generator);
    }
    // Every object has these, and every kind calls them the same.
    add::<core::v1::ConfigMap>(&mut generator);
    Descriptions(generator.take_definitions(false))
}

impl Descriptions {
    /// Puts descriptions to these schemas and their properties, by the names of the types.
    pub(super) fn describe(&self, schemas: &mut Map<String, Value>) {
        for (name, schema) in schemas {
            let Some(known) = self.0.get(name) else {
                continue;
            };
            put(schema, known);
            let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
            else {
                continue;
            };
            for (name, property) in properties {
                put(property, &known["properties"][name]);
            }
        }
    }

    /// Puts descriptions to what every object of a custom resource has.
    pub(super) fn describe_custom(&self, schema: &mut Value) {
        let known = &self.0["io.k8s.api.core.v1.ConfigMap"]["properties"];
        let Some(properties) = schema.get_mut("properties") else {
            return;
        };
        for name in ["apiVersion", "kind", "metadata"] {
            if let Some(property) = properties.get_mut(name) {
                put(property, &known[name]);
            }
        }
    }
}

fn put(schema: &mut Value, known: &Value) {
    if let (Some(schema), Some(text)) = (schema.as_object_mut(), known.get("description")) {
        schema.insert("description".to_owned(), text.clone());
    }
}
