//! Everything a cluster needs to run an operator.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Capabilities, Container, ContainerPort, Namespace, PodSecurityContext, PodSpec,
            PodTemplateSpec, ResourceRequirements, SeccompProfile, SecurityContext,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
    },
};

use crate::{
    Description, Reach,
    role::{cluster_role, cluster_role_binding, labels, named, service_account},
    webhook::{self, SERVING_PORT},
    yaml::{Error, Manifest},
};

/// Where and from what an operator is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The namespace the operator runs in.
    pub namespace: String,
    /// The image of its program.
    pub image: String,
}

impl Installation {
    /// The usual namespace of an operator.
    pub fn namespace_of(operator: &str) -> String {
        format!("{operator}-system")
    }

    /// The usual: a namespace `<name>-system` and an image `<name>:<version>`.
    pub fn of(description: &Description) -> Self {
        Self {
            namespace: Self::namespace_of(&description.name),
            image: format!("{}:{}", description.name, description.version),
        }
    }
}

/// All manifests in the order in which they can be applied.
pub fn manifests(
    description: &Description,
    installation: &Installation,
) -> Result<Vec<Manifest>, Error> {
    let namespace = &installation.namespace;
    let mut manifests = vec![Manifest::of(&namespace_of(description, namespace))?];
    for crd in &description.crds {
        manifests.push(Manifest::of(crd)?);
    }
    if description.has_webhooks() {
        manifests.extend(webhook_manifests(description, namespace)?);
    }
    manifests.extend([
        Manifest::of(&service_account(description, namespace))?,
        Manifest::of(&cluster_role(description))?,
        Manifest::of(&cluster_role_binding(description, namespace))?,
        Manifest::of(&deployment(description, installation))?,
    ]);
    Ok(manifests)
}

/// What the webhooks of an operator need: Secret, Service, configurations.
pub fn webhook_manifests(
    description: &Description,
    namespace: &str,
) -> Result<Vec<Manifest>, Error> {
    let reach = Reach::Service(namespace.to_owned());
    let mut manifests = vec![
        Manifest::of(&webhook::secret(description, namespace))?,
        Manifest::of(&webhook::service(description, namespace))?,
    ];
    if let Some(configuration) = webhook::mutating(description, &reach) {
        manifests.push(Manifest::of(&configuration)?);
    }
    if let Some(configuration) = webhook::validating(description, &reach) {
        manifests.push(Manifest::of(&configuration)?);
    }
    Ok(manifests)
}

/// The operator's namespace.
pub fn namespace_of(description: &Description, namespace: &str) -> Namespace {
    let metadata = ObjectMeta {
        name: Some(namespace.to_owned()),
        ..named(description)
    };
    Namespace {
        metadata,
        ..Namespace::default()
    }
}

/// The deployment that runs the operator's program.
pub fn deployment(description: &Description, installation: &Installation) -> Deployment {
    let labels = labels(description);
    let selector = labels.iter().filter(|(key, _)| key.ends_with("/name"));
    let selector = selector
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Deployment {
        metadata: ObjectMeta {
            namespace: Some(installation.namespace.clone()),
            ..named(description)
        },
        spec: Some(DeploymentSpec {
            // One at a time: there is no leader election yet, so two must never overlap.
            replicas: Some(1),
            strategy: Some(recreate()),
            selector: LabelSelector {
                match_labels: Some(selector),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    service_account_name: Some(description.name.clone()),
                    containers: vec![container(description, installation)],
                    security_context: Some(PodSecurityContext {
                        run_as_non_root: Some(true),
                        seccomp_profile: Some(SeccompProfile {
                            type_: "RuntimeDefault".to_owned(),
                            ..SeccompProfile::default()
                        }),
                        ..PodSecurityContext::default()
                    }),
                    termination_grace_period_seconds: Some(40),
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn recreate() -> k8s_openapi::api::apps::v1::DeploymentStrategy {
    k8s_openapi::api::apps::v1::DeploymentStrategy {
        type_: Some("Recreate".to_owned()),
        ..Default::default()
    }
}

fn container(description: &Description, installation: &Installation) -> Container {
    let quantities = |of: [(&str, &str); 2]| {
        Some(
            of.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
                .into(),
        )
    };
    Container {
        name: description.name.clone(),
        image: Some(installation.image.clone()),
        args: Some(vec!["run".to_owned()]),
        ports: description.has_webhooks().then(|| {
            vec![ContainerPort {
                name: Some("webhook".to_owned()),
                container_port: i32::from(SERVING_PORT),
                ..ContainerPort::default()
            }]
        }),
        resources: Some(ResourceRequirements {
            requests: quantities([("cpu", "10m"), ("memory", "32Mi")]),
            limits: Some([("memory".to_owned(), Quantity("256Mi".to_owned()))].into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}
