//! Installing definitions without breaking what is there.
//!
//! Each definition is compared with the installed one; changes that break objects or clients are
//! named and refused, unless forced. When the version that objects are stored in changes, every
//! object is written once more, so that the old version may go with the next release.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;
use windlass_manifests::upgrade::{Change, changes};

use crate::{Error, Operator, Result};

/// How often and how long the server is asked whether a CRD is served yet.
const POLL: Duration = Duration::from_millis(100);
const POLLS: u32 = 300;
/// How many objects are read at once when they are rewritten.
const PAGE: u32 = 500;

impl Operator {
    /// Installs the definitions of the operator's kinds; see [`install`].
    pub async fn install(&self, client: &Client, force: bool) -> Result<Vec<String>> {
        self.check()?;
        install(client, self.name(), &self.crds(), force).await
    }
}

/// Installs definitions as field manager `manager`, and answers what was done, as lines for people.
///
/// Fails before anything is changed when one of them would break objects or clients; the error
/// names every such change. `force` installs them nevertheless.
pub async fn install(
    client: &Client,
    manager: &str,
    crds: &[CustomResourceDefinition],
    force: bool,
) -> Result<Vec<String>> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let (mut lines, mut breaking) = (Vec::new(), Vec::new());
    for crd in crds {
        let name = crd.name_any();
        let installed = api.get_opt(&name).await;
        let installed = installed.map_err(|error| Error::api("get", object(&name), error))?;
        let Some(installed) = installed else {
            continue;
        };
        for change in changes(&installed, crd) {
            let line = format!("{name} {change}");
            let Change {
                breaking: breaks, ..
            } = change;
            if breaks && !force {
                breaking.push(line);
            } else {
                lines.push(line);
            }
        }
    }
    if !breaking.is_empty() {
        return Err(Error::terminal(format!(
            "installing would break objects or clients that are there; nothing was changed (`--force` installs them all the same):\n{}",
            breaking.join("\n")
        )));
    }
    let params = PatchParams::apply(manager).force();
    for crd in crds {
        let name = crd.name_any();
        let applied = api.patch(&name, &params, &Patch::Apply(crd)).await;
        applied.map_err(|error| Error::api("apply", object(&name), error))?;
        let served = established(&api, &name).await?;
        lines.push(format!("installed {name}"));
        lines.extend(migrate(client, &api, &served).await?);
    }
    Ok(lines)
}

fn object(name: &str) -> String {
    format!("customresourcedefinitions.apiextensions.k8s.io {name}")
}

/// Waits until objects of the kind can be created.
async fn established(
    api: &Api<CustomResourceDefinition>,
    name: &str,
) -> Result<CustomResourceDefinition> {
    for _ in 0..POLLS {
        let crd = api.get(name).await;
        let crd = crd.map_err(|error| Error::api("get", object(name), error))?;
        let conditions = crd
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref());
        let is_established = conditions
            .into_iter()
            .flatten()
            .any(|one| one.type_ == "Established" && one.status == "True");
        if is_established {
            return Ok(crd);
        }
        tokio::time::sleep(POLL).await;
    }
    Err(Error::other(format!(
        "{} was applied but is not served yet",
        object(name)
    )))
}

/// Rewrites every object when some may be stored in another version than the one of now.
async fn migrate(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    crd: &CustomResourceDefinition,
) -> Result<Option<String>> {
    let storage = crd.spec.versions.iter().find(|version| version.storage);
    let status = crd.status.as_ref();
    let stored = status.and_then(|status| status.stored_versions.clone());
    let (Some(storage), Some(stored)) = (storage, stored) else {
        return Ok(None);
    };
    if stored.iter().all(|version| *version == storage.name) {
        return Ok(None);
    }
    let name = crd.name_any();
    let rewritten = rewrite(client, crd, &storage.name).await?;
    // Only if nobody changed the definition meanwhile: another version could be stored by now.
    let trimmed = json!({
        "metadata": { "resourceVersion": crd.resource_version() },
        "status": { "storedVersions": [storage.name] },
    });
    let params = PatchParams::default();
    let patched = api
        .patch_status(&name, &params, &Patch::Merge(&trimmed))
        .await;
    patched.map_err(|error| Error::api("patch", object(&name), error))?;
    Ok(Some(format!(
        "rewrote {rewritten} objects of {name} as {}; {} may go",
        storage.name,
        stored
            .iter()
            .filter(|version| **version != storage.name)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ")
    )))
}

/// Writes every object as it is, which stores it in the version of now; answers how many.
async fn rewrite(client: &Client, crd: &CustomResourceDefinition, version: &str) -> Result<usize> {
    let spec = &crd.spec;
    let resource = ApiResource {
        group: spec.group.clone(),
        version: version.to_owned(),
        api_version: format!("{}/{version}", spec.group),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
    };
    let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut params = ListParams::default().limit(PAGE);
    let (mut rewritten, kind) = (0, crd.name_any());
    loop {
        let page = everywhere.list(&params).await;
        let page = page.map_err(|error| Error::api("list", kind.clone(), error))?;
        for one in page.items {
            let name = one.name_any();
            let api: Api<DynamicObject> = match one.namespace() {
                Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
                None => everywhere.clone(),
            };
            match api.replace(&name, &PostParams::default(), &one).await {
                Ok(_) => rewritten += 1,
                // Whoever wrote it in between stored it anew; what is gone needs nothing.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(Error::api("update", format!("{kind} {name}"), error)),
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(rewritten),
        }
    }
}
