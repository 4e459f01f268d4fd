//! The objects of an operator in a cluster: applied with a mark, found by it, removed.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{GroupVersionKind, PartialObjectMeta, TypeMeta};
use kube::discovery::{ApiResource, Discovery, Scope, verbs};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};

use crate::error::{Error, Result, doing};

/// Who applies, in managed fields.
const MANAGER: &str = "windlass-deploy";
/// Marks what a deploy made, with the name of the project; what was there before has none.
const MARK: &str = "windlass.dev/deployed";
/// How long an object may take to be served, or to go.
pub(super) const LIMIT: Duration = Duration::from_mins(2);

/// The kinds of which the manifests of an operator are, in the order in which they are removed:
/// its own kinds while the operator still runs, so that it can clean up after their objects; then
/// the operator; last the namespace around it.
const KINDS: &[(&str, &str, &str)] = &[
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
    ),
    ("apps", "v1", "Deployment"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("", "v1", "Service"),
    ("", "v1", "Secret"),
    ("", "v1", "ConfigMap"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "Namespace"),
];

/// What an apply did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    New,
    Changed,
}

/// What a removal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    Absent,
}

pub(super) fn kind_of(object: &DynamicObject) -> &str {
    object
        .types
        .as_ref()
        .map_or("", |types| types.kind.as_str())
}

pub(super) fn shown(object: &DynamicObject) -> String {
    let kind = kind_of(object).to_lowercase();
    match object.namespace() {
        Some(namespace) => format!("{kind} {namespace}/{}", object.name_any()),
        None => format!("{kind} {}", object.name_any()),
    }
}

/// The API of an object's kind; none where the cluster does not have it.
async fn api(client: &Client, object: &DynamicObject) -> Result<Option<Api<DynamicObject>>> {
    let types = object.types.clone().unwrap_or_default();
    let gvk = GroupVersionKind::try_from(&types)
        .map_err(|error| Error::Other(format!("{}: {error}", shown(object))))?;
    let Some((resource, scope)) = kind(client, &gvk).await? else {
        return Ok(None);
    };
    Ok(Some(match (scope, object.namespace()) {
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    }))
}

async fn kind(client: &Client, gvk: &GroupVersionKind) -> Result<Option<(ApiResource, Scope)>> {
    match kube::discovery::pinned_kind(client, gvk).await {
        Ok((resource, capabilities)) => Ok(Some((resource, capabilities.scope))),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(doing(format!("find the kind {}", gvk.kind))(error)),
    }
}

/// Applies an object; one that was not there gets the mark.
pub(super) async fn apply(client: &Client, name: &str, object: &DynamicObject) -> Result<Made> {
    let Some(api) = api(client, object).await? else {
        return Err(Error::Other(format!(
            "the cluster does not know the kind of {}",
            shown(object)
        )));
    };
    let id = object.name_any();
    let found = api
        .get_opt(&id)
        .await
        .map_err(doing(format!("look at {}", shown(object))))?;
    let made = match &found {
        None => Made::New,
        Some(_) => Made::Changed,
    };
    let mut object = object.clone();
    if found.is_none_or(|found| is_ours(&found, name)) {
        object.labels_mut().insert(MARK.to_owned(), name.to_owned());
    }
    let params = PatchParams::apply(MANAGER).force();
    api.patch(&id, &params, &Patch::Apply(&object))
        .await
        .map_err(doing(format!("apply {}", shown(&object))))?;
    Ok(made)
}

/// Waits until an object that was applied can be used: objects of a new kind can be created only
/// then.
pub(super) async fn usable(client: &Client, object: &DynamicObject) -> Result<()> {
    if kind_of(object) != "CustomResourceDefinition" {
        return Ok(());
    }
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let established = conditions::is_crd_established();
    wait(
        &format!("{} to be served", shown(object)),
        await_condition(crds, &object.name_any(), established),
    )
    .await
}

fn is_ours(object: &DynamicObject, name: &str) -> bool {
    object.labels().get(MARK).is_some_and(|mark| mark == name)
}

/// Everything in the cluster that deploy made for a project, in the order in which it is removed.
pub(super) async fn made(client: &Client, name: &str) -> Result<Vec<DynamicObject>> {
    let params = ListParams::default().labels(&format!("{MARK}={name}"));
    let mut found = Vec::new();
    for (group, version, kind_name) in KINDS {
        let gvk = GroupVersionKind::gvk(group, version, kind_name);
        let Some((resource, _)) = kind(client, &gvk).await? else {
            continue;
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let list = api
            .list(&params)
            .await
            .map_err(doing(format!("list {}", resource.plural)))?;
        found.extend(list.items.into_iter().map(|mut object| {
            // Items of a list do not always say what they are.
            object.types = Some(TypeMeta {
                api_version: gvk.api_version(),
                kind: gvk.kind.clone(),
            });
            object
        }));
    }
    Ok(found)
}

/// Removes an object that deploy made, and waits until it is gone.
pub(super) async fn remove(client: &Client, name: &str, object: &DynamicObject) -> Result<Removal> {
    let Some(api) = api(client, object).await? else {
        return Ok(Removal::Absent);
    };
    let id = object.name_any();
    let found = api
        .get_opt(&id)
        .await
        .map_err(doing(format!("look at {}", shown(object))))?;
    let Some(found) = found.filter(|found| is_ours(found, name)) else {
        return Ok(Removal::Absent);
    };
    // Dependents first: what the object has made is gone when it is.
    match api.delete(&id, &DeleteParams::foreground()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Removal::Absent),
        Err(error) => return Err(doing(format!("delete {}", shown(object)))(error)),
    }
    let uid = found.uid().unwrap_or_default();
    wait(
        &format!("{} to be gone", shown(object)),
        await_condition(api, &id, conditions::is_deleted(&uid)),
    )
    .await?;
    Ok(Removal::Done)
}

/// What somebody else keeps in the namespace of an operator.
pub(super) async fn others_in(client: &Client, name: &str, namespace: &str) -> Result<Vec<String>> {
    let discovery = Discovery::new(client.clone())
        .run()
        .await
        .map_err(doing("find the kinds of the cluster"))?;
    let mut others = Vec::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            let listed = capabilities.scope == Scope::Namespaced
                && capabilities.supports_operation(verbs::LIST);
            if !listed {
                continue;
            }
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), namespace, &resource);
            let list = api.list_metadata(&ListParams::default()).await;
            let list = list.map_err(doing(format!("list {} in {namespace}", resource.plural)))?;
            let foreign = list
                .items
                .iter()
                .filter(|object| !comes_with(&resource.kind, object, name));
            others.extend(
                foreign.map(|object| {
                    format!("{} {}", resource.kind.to_lowercase(), object.name_any())
                }),
            );
        }
    }
    Ok(others)
}

/// Whether an object is part of any namespace, or of the operator's own housekeeping in its own.
fn comes_with(kind: &str, object: &PartialObjectMeta<DynamicObject>, name: &str) -> bool {
    let id = object.name_any();
    let owned = !object.owner_references().is_empty();
    let going = object.metadata.deletion_timestamp.is_some();
    let marked = object.labels().get(MARK).is_some_and(|mark| mark == name);
    owned
        || going
        || marked
        || match kind {
            "Event" => true,
            "ServiceAccount" => id == "default",
            "ConfigMap" => id == "kube-root-ca.crt",
            "Lease" | "Endpoints" | "EndpointSlice" => id.starts_with(name),
            _ => false,
        }
}

pub(super) async fn wait<T>(
    what: &str,
    condition: impl Future<Output = std::result::Result<T, kube::runtime::wait::Error>>,
) -> Result<()> {
    match tokio::time::timeout(LIMIT, condition).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Error::Other(format!("cannot wait for {what}: {error}"))),
        Err(_) => Err(Error::Other(format!(
            "waited {} s in vain for {what}; look at it with `kubectl describe`",
            LIMIT.as_secs()
        ))),
    }
}
