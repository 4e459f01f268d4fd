//! Parameters: the objects that a policy is evaluated with.

use std::sync::Arc;

use serde_json::Value;

use super::binding::ParamRef;
use super::definition::ParamKind;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Key, Stored};
use crate::webhook::{self, Attributes};

/// Why there are no parameters: the policy or its binding is misconfigured.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamsError {
    #[error(
        "failed to find resource referenced by paramKind: '{}/{}, Kind={}'",
        .0.group, .0.version, .0.kind
    )]
    NoSuchKind(ParamKind),
    #[error(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    )]
    NoNamespace,
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    Namespace,
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
    #[error("{}", .0.message)]
    Convert(ApiError),
}

/// The resource of parameters, if a policy has them.
pub(super) fn kind(
    server: &ApiServer,
    wanted: Option<&ParamKind>,
) -> Result<Option<Arc<Resource>>, ParamsError> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let known = server.registry().known();
    let found = known.all().find(|resource| {
        resource.group == wanted.group
            && resource.version == wanted.version
            && resource.kind == wanted.kind
            && resource.is_stored()
    });
    match found {
        Some(found) => Ok(Some(Arc::clone(found))),
        None => Err(ParamsError::NoSuchKind(wanted.clone())),
    }
}

/// The parameters of a binding: one that is nothing where there are none to have.
pub(super) async fn find(
    attributes: &Attributes<'_>,
    kind: Option<&Resource>,
    reference: Option<&ParamRef>,
) -> Result<Vec<Option<Value>>, ParamsError> {
    let (Some(resource), Some(reference)) = (kind, reference) else {
        return Ok(vec![None]);
    };
    let namespace = match (resource.namespaced, reference.namespace.as_str()) {
        (true, "") if attributes.namespace.is_empty() => {
            return Err(ParamsError::NoNamespace);
        }
        (true, "") => attributes.namespace,
        (true, namespace) => namespace,
        (false, "") => "",
        (false, _) => {
            return Err(ParamsError::Namespace);
        }
    };
    let store = attributes.server.store();
    let found: Vec<Arc<Stored>> = match &reference.selector {
        None => {
            let key = Key::new(namespace, &reference.name);
            store.get(&resource.table, &key).into_iter().collect()
        }
        Some(selector) => {
            let listing = store.list(&resource.table, Some(namespace), None, None);
            let all = listing.map(|listing| listing.objects).unwrap_or_default();
            let selected = |object: &Arc<Stored>| selector.matches_labels(&object.labels);
            all.into_iter().filter(selected).collect()
        }
    };
    if found.is_empty() && reference.required {
        return Err(ParamsError::NotFound);
    }
    let mut objects: Vec<Value> = found.iter().map(|object| object.value()).collect();
    if let Some(custom) = &resource.custom {
        for object in &mut objects {
            custom.objects.read_stored(object);
        }
        let api_version = resource.api_version();
        let converted = webhook::convert(attributes.server, resource, &api_version, objects);
        objects = converted.await.map_err(ParamsError::Convert)?;
    }
    Ok(objects.into_iter().map(Some).collect())
}
