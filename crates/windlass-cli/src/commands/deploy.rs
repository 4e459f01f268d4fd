//! `windlass deploy` and `undeploy`: the whole operator, into the cluster and out of it.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};

use crate::error::{Error, Result, doing};
use crate::program::Program;
use crate::progress::Step;

/// Who applies, in managed fields.
const MANAGER: &str = "windlass-deploy";
/// Marks what a deploy made, so that undeploy leaves alone what was there before.
const MARK: &str = "windlass.dev/deployed";
/// How long the operator may take until it runs.
const LIMIT: Duration = Duration::from_mins(2);

/// Install the operator with everything it needs into the cluster of the current kubeconfig
#[derive(Args)]
#[command(after_help = "Examples:
  windlass deploy
  windlass deploy --image registry.example.com/my-operator:1.0.0")]
pub(crate) struct Deploy {
    /// The image of the operator's program
    #[arg(long)]
    image: Option<String>,
    /// Do not wait until it runs
    #[arg(long)]
    no_wait: bool,
}

impl Deploy {
    pub(crate) async fn run(self) -> Result<()> {
        let program = Program::build(Path::new("."), false)?;
        let image = self.image.iter().flat_map(|image| ["--image", image]);
        let objects = read(&program.ask(["manifests"].into_iter().chain(image))?)?;
        let client = client().await?;
        let step = Step::start(format!("applying {} objects", objects.len()));
        for object in &objects {
            apply(&client, object).await?;
        }
        drop(step);
        if !self.no_wait {
            for object in objects
                .iter()
                .filter(|object| kind_of(object) == "Deployment")
            {
                available(&client, object).await?;
            }
        }
        println!(
            "{} is deployed ({} objects). Remove it with `windlass undeploy`.",
            program.project.project_name,
            objects.len()
        );
        Ok(())
    }
}

/// Remove everything that deploy made, and nothing else
#[derive(Args)]
#[command(after_help = "Example:
  windlass undeploy")]
pub(crate) struct Undeploy {}

impl Undeploy {
    pub(crate) async fn run(self) -> Result<()> {
        let program = Program::build(Path::new("."), false)?;
        let objects = read(&program.ask(["manifests"])?)?;
        let client = client().await?;
        let (mut removed, mut kept) = (0, Vec::new());
        let step = Step::start("removing what deploy made");
        // The operator goes before its role and its kinds, so that it can still clean up.
        for object in objects.iter().rev() {
            match remove(&client, object).await? {
                Removal::Done => removed += 1,
                Removal::Absent => {}
                Removal::NotOurs => kept.push(shown(object)),
            }
        }
        drop(step);
        println!(
            "removed {removed} objects of {}",
            program.project.project_name
        );
        for object in kept {
            println!("left {object}: it was there before deploy");
        }
        Ok(())
    }
}

async fn client() -> Result<Client> {
    Client::try_default().await.map_err(|error| {
        Error::Other(format!(
            "cannot reach a cluster: {error}; start one with `windlass up` and set KUBECONFIG, or choose a context of yours"
        ))
    })
}

fn read(yaml: &str) -> Result<Vec<DynamicObject>> {
    serde_saphyr::from_multiple(yaml)
        .map_err(|error| Error::Other(format!("cannot read the operator's manifests: {error}")))
}

fn kind_of(object: &DynamicObject) -> &str {
    object
        .types
        .as_ref()
        .map_or("", |types| types.kind.as_str())
}

fn shown(object: &DynamicObject) -> String {
    format!("{} {}", kind_of(object).to_lowercase(), object.name_any())
}

async fn resource(client: &Client, object: &DynamicObject) -> Result<Option<(ApiResource, Scope)>> {
    let types = object.types.clone().unwrap_or_default();
    let gvk = GroupVersionKind::try_from(&types)
        .map_err(|error| Error::Other(format!("{}: {error}", shown(object))))?;
    match kube::discovery::pinned_kind(client, &gvk).await {
        Ok((resource, capabilities)) => Ok(Some((resource, capabilities.scope))),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(doing(format!("find the kind of {}", shown(object)))(error)),
    }
}

fn api(
    client: &Client,
    object: &DynamicObject,
    resource: &ApiResource,
    scope: &Scope,
) -> Api<DynamicObject> {
    match (scope, object.namespace()) {
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), &namespace, resource)
        }
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), resource),
        (Scope::Cluster, _) => Api::all_with(client.clone(), resource),
    }
}

async fn apply(client: &Client, object: &DynamicObject) -> Result<()> {
    let Some((resource, scope)) = resource(client, object).await? else {
        return Err(Error::Other(format!(
            "the cluster does not know the kind of {}",
            shown(object)
        )));
    };
    let api = api(client, object, &resource, &scope);
    let name = object.name_any();
    let found = api
        .get_opt(&name)
        .await
        .map_err(doing(format!("look at {}", shown(object))))?;
    let mut object = object.clone();
    if found.is_none_or(|found| found.annotations().contains_key(MARK)) {
        object
            .annotations_mut()
            .insert(MARK.to_owned(), "true".to_owned());
    }
    let params = PatchParams::apply(MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .map_err(doing(format!("apply {}", shown(&object))))?;
    if kind_of(&object) == "CustomResourceDefinition" {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        wait(
            &format!("{} to be served", shown(&object)),
            await_condition(crds, &name, conditions::is_crd_established()),
        )
        .await?;
    }
    Ok(())
}

async fn available(client: &Client, object: &DynamicObject) -> Result<()> {
    let namespace = object.namespace().unwrap_or_default();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let what = format!("{} to run", shown(object));
    let _step = Step::start(format!("waiting for {what}"));
    let name = object.name_any();
    let running = await_condition(deployments, &name, conditions::is_deployment_completed());
    wait(&what, running).await
}

async fn wait<T>(
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

enum Removal {
    Done,
    Absent,
    NotOurs,
}

async fn remove(client: &Client, object: &DynamicObject) -> Result<Removal> {
    let Some((resource, scope)) = resource(client, object).await? else {
        return Ok(Removal::Absent);
    };
    let api = api(client, object, &resource, &scope);
    let name = object.name_any();
    let found = api
        .get_opt(&name)
        .await
        .map_err(doing(format!("look at {}", shown(object))))?;
    let Some(found) = found else {
        return Ok(Removal::Absent);
    };
    if !found.annotations().contains_key(MARK) {
        return Ok(Removal::NotOurs);
    }
    match api.delete(&name, &DeleteParams::background()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Removal::Absent),
        Err(error) => return Err(doing(format!("delete {}", shown(object)))(error)),
    }
    let uid = found.uid().unwrap_or_default();
    wait(
        &format!("{} to be gone", shown(object)),
        await_condition(api, &name, conditions::is_deleted(&uid)),
    )
    .await?;
    Ok(Removal::Done)
}
