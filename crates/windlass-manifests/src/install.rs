//! Everything a cluster needs to run an operator.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Capabilities, Container, ContainerPort, HTTPGetAction, Namespace, PodSecurityContext,
            PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, SecurityContext,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use crate::{
    Description, Reach, files, metrics, order,
    role::{labels, named, selector},
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

/// All manifests in the order in which they can be applied, which is that of kustomize.
///
/// Fails when the API server would refuse one of the operator's kinds.
pub fn manifests(
    description: &Description,
    installation: &Installation,
) -> Result<Vec<Manifest>, Error> {
    let flaws = description.flaws();
    if !flaws.is_empty() {
        return Err(Error::Flawed(flaws.join("\n")));
    }
    let namespace = &installation.namespace;
    let mut manifests = vec![
        Manifest::of(&namespace_of(description, namespace))?,
        Manifest::of(&deployment(description, installation))?,
    ];
    for (_, objects) in files::objects(description, namespace)? {
        manifests.extend(objects);
    }
    if description.has_webhooks() {
        manifests.extend(webhook_manifests(description, namespace)?);
    }
    order::sort(&mut manifests);
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
    Deployment {
        metadata: ObjectMeta {
            namespace: Some(installation.namespace.clone()),
            ..named(description)
        },
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: LabelSelector {
                match_labels: Some(selector(description)),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    annotations: Some(default_container(description)),
                    labels: Some(labels(description)),
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

/// Which container `kubectl logs` and `kubectl exec` mean.
fn default_container(description: &Description) -> BTreeMap<String, String> {
    let key = "kubectl.kubernetes.io/default-container";
    [(key.to_owned(), description.name.clone())].into()
}

fn probe(path: &str, delay: i32, period: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("probes".to_owned()),
            ..HTTPGetAction::default()
        }),
        initial_delay_seconds: Some(delay),
        period_seconds: Some(period),
        ..Probe::default()
    }
}

fn ports(description: &Description) -> Vec<ContainerPort> {
    let mut ports = vec![("metrics", metrics::PORT), ("probes", metrics::PROBES_PORT)];
    if description.has_webhooks() {
        ports.push(("webhook", SERVING_PORT));
    }
    let port = |(name, port): (&str, u16)| ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(port),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    ports.into_iter().map(port).collect()
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
        ports: Some(ports(description)),
        liveness_probe: Some(probe("/healthz", 15, 20)),
        readiness_probe: Some(probe("/readyz", 5, 10)),
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
