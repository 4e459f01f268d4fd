//! Controllers that are files: an operator with exactly the rights that they need.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::{CronJob, Job},
        core::v1::{
            ConfigMap, Endpoints, LimitRange, Namespace, Node, PersistentVolume,
            PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service, ServiceAccount,
        },
        discovery::v1::EndpointSlice,
        networking::v1::{Ingress, NetworkPolicy},
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
        storage::v1::StorageClass,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde_json::Value;
use windlass::{Operator, kind::KindInfo};

use super::{
    Options,
    controllers::{Configures, Resolved},
    kinds::{CompositeController, DecoratorController, ResourceRule},
    resolve::{Found, Said},
    revisions,
};

/// Why files are no operator.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The text is not YAML.
    #[error("cannot read the files as YAML: {0}")]
    Yaml(String),
    /// There is no controller in them.
    #[error("the files hold no CompositeController and no DecoratorController")]
    Empty,
    /// A document is not what its kind says.
    #[error("cannot decode {kind}: {source}")]
    Decode {
        /// The kind.
        kind: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A kind is not known.
    #[error(
        "cannot find the kind of {resource} in {api_version}: add its CustomResourceDefinition to the files"
    )]
    UnknownKind {
        /// The group and version.
        api_version: String,
        /// The plural name.
        resource: String,
    },
    /// A hook cannot be called.
    #[error("cannot use {name}: {why}")]
    Hook {
        /// The controller.
        name: String,
        /// Why.
        why: String,
    },
}

/// The operator that a folder of files describes: its controllers, and the definitions of kinds that
/// are among the files. Its role is exactly what these need.
///
/// Programs may be run as hooks. What is named in the cluster, such as a Secret with a password, is
/// not looked up: for that, create the controllers as objects.
///
/// ```
/// use windlass_declarative::metacontroller::{Options, operator_of_files};
///
/// let files = r#"
/// apiVersion: metacontroller.k8s.io/v1alpha1
/// kind: DecoratorController
/// metadata: {name: labels}
/// spec:
///   resources: [{apiVersion: v1, resource: services}]
///   attachments: [{apiVersion: v1, resource: configmaps}]
///   hooks:
///     sync: {exec: ["./sync.sh"]}
/// "#;
/// let operator = operator_of_files("labels", files, Options::default())?;
/// let description = operator.description();
/// let mut resources: Vec<_> = description.rules().map(|rule| rule.resource.as_str()).collect();
/// resources.sort_unstable();
/// resources.dedup();
/// assert_eq!(resources, ["configmaps", "events", "services", "services/finalizers", "services/status"]);
/// # Ok::<(), windlass_declarative::metacontroller::FilesError>(())
/// ```
pub fn operator_of_files(name: &str, text: &str, options: Options) -> Result<Operator, FilesError> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| FilesError::Yaml(error.to_string()))?;
    let mut operator = Operator::new(name.to_owned());
    let mut definitions = Vec::new();
    for document in documents
        .iter()
        .filter(|one| one["kind"] == "CustomResourceDefinition")
    {
        definitions.push(decode::<CustomResourceDefinition>(document)?);
    }
    let options = Options {
        exec: true,
        ..options
    };
    let mut controllers = Vec::new();
    let mut rolls = false;
    for document in &documents {
        match document["kind"].as_str() {
            Some("CompositeController") => {
                let one: CompositeController = decode(document)?;
                rolls |= one.spec.child_resources.iter().any(|child| {
                    let strategy = child.update_strategy.as_ref();
                    strategy
                        .and_then(|it| it.method)
                        .unwrap_or_default()
                        .is_rolling()
                });
                controllers.extend(controllers_of(&one, &definitions, &options)?);
            }
            Some("DecoratorController") => {
                let one: DecoratorController = decode(document)?;
                controllers.extend(controllers_of(&one, &definitions, &options)?);
            }
            _ => {}
        }
    }
    if controllers.is_empty() {
        return Err(FilesError::Empty);
    }
    for controller in controllers {
        operator = operator.controller(controller);
    }
    if rolls && let Ok(definition) = revisions::definition() {
        definitions.push(definition);
    }
    for definition in definitions {
        operator = operator.definition(definition);
    }
    Ok(operator)
}

fn decode<T: serde::de::DeserializeOwned>(document: &Value) -> Result<T, FilesError> {
    serde_json::from_value(document.clone()).map_err(|source| FilesError::Decode {
        kind: document["kind"].as_str().unwrap_or_default().to_owned(),
        source,
    })
}

fn controllers_of<C: Configures>(
    object: &C,
    definitions: &[CustomResourceDefinition],
    options: &Options,
) -> Result<Vec<windlass::Controller<kube::core::DynamicObject>>, FilesError> {
    let name = format!(
        "{}{}",
        C::PREFIX,
        object.meta().name.as_deref().unwrap_or_default()
    );
    let transport = Arc::clone(&options.transport);
    let said = Said {
        hooks: object.hooks(),
        endpoints: object.endpoints(),
        exec: options.exec,
        transport: &transport,
    };
    let hook = |why: String| FilesError::Hook {
        name: name.clone(),
        why,
    };
    let callers = said.callers(&Found::new()).map_err(hook)?;
    object.check().map_err(hook)?;
    let kinds: Result<Vec<KindInfo>, FilesError> = object
        .rules()
        .iter()
        .map(|rule| kind_of(rule, definitions))
        .collect();
    let kinds = kinds?;
    Ok(object.controllers(Resolved { kinds, callers }, &name))
}

/// The kind of a resource: defined in the files, or built into Kubernetes.
fn kind_of(
    rule: &ResourceRule,
    definitions: &[CustomResourceDefinition],
) -> Result<KindInfo, FilesError> {
    let ResourceRule {
        api_version,
        resource,
    } = rule;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let defined = definitions.iter().find(|crd| {
        crd.spec.group == group
            && crd.spec.names.plural == *resource
            && crd.spec.versions.iter().any(|one| one.name == version)
    });
    if let Some(crd) = defined {
        return Ok(KindInfo {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: crd.spec.names.kind.clone(),
            plural: resource.clone(),
            namespaced: crd.spec.scope == "Namespaced",
        });
    }
    builtin()
        .into_iter()
        .find(|kind| kind.plural == *resource && kind.api_version() == *api_version)
        .ok_or_else(|| FilesError::UnknownKind {
            api_version: api_version.clone(),
            resource: resource.clone(),
        })
}

/// Kinds that are built into Kubernetes, and that controllers are about.
fn builtin() -> Vec<KindInfo> {
    macro_rules! kinds {
        ($($kind:ty),* $(,)?) => { vec![$(KindInfo::of::<$kind>()),*] };
    }
    kinds![
        ClusterRole,
        ClusterRoleBinding,
        ConfigMap,
        CronJob,
        DaemonSet,
        Deployment,
        EndpointSlice,
        Endpoints,
        HorizontalPodAutoscaler,
        Ingress,
        Job,
        LimitRange,
        Namespace,
        NetworkPolicy,
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
        PodDisruptionBudget,
        ReplicaSet,
        ResourceQuota,
        Role,
        RoleBinding,
        Secret,
        Service,
        ServiceAccount,
        StatefulSet,
        StorageClass,
        CustomResourceDefinition,
    ]
}
