//! Waiting until the operator's Deployment runs, and saying why it does not.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams};
use kube::runtime::conditions::is_deployment_completed;
use kube::runtime::wait::Condition as _;
use kube::{Api, Client, ResourceExt};
use tokio::time::Instant;

use super::objects::{kind_of, shown};
use crate::error::{Error, Result, doing};
use crate::progress::Step;

/// How long the operator may take until it runs.
const LIMIT: Duration = Duration::from_mins(2);
/// How long an image may seem to be missing before it is: a registry may be slow to answer.
const IMAGE_LIMIT: Duration = Duration::from_secs(15);
/// How often is looked.
const PERIOD: Duration = Duration::from_millis(250);

/// Waits until every Deployment among the objects runs.
pub(super) async fn all_run(client: &Client, objects: &[DynamicObject]) -> Result<()> {
    for object in objects
        .iter()
        .filter(|object| kind_of(object) == "Deployment")
    {
        runs(client, object).await?;
    }
    Ok(())
}

async fn runs(client: &Client, object: &DynamicObject) -> Result<()> {
    let namespace = object.namespace().unwrap_or_default();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let name = object.name_any();
    let _step = Step::start(format!("waiting for {} to run", shown(object)));
    let began = Instant::now();
    loop {
        let deployment = deployments
            .get(&name)
            .await
            .map_err(doing(format!("look at {}", shown(object))))?;
        if is_deployment_completed().matches_object(Some(&deployment)) {
            return Ok(());
        }
        let obstacle = obstacle(client, &deployment).await?;
        let limit = match &obstacle {
            Some(obstacle) if obstacle.image => IMAGE_LIMIT,
            _ => LIMIT,
        };
        if began.elapsed() > limit {
            let why = obstacle.map_or_else(
                || "look at it with `kubectl describe`".to_owned(),
                |obstacle| obstacle.text,
            );
            return Err(Error::Other(format!(
                "{} is applied but does not run after {} s: {why}; remove it with `windlass undeploy`",
                shown(object),
                limit.as_secs()
            )));
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// What keeps a pod from running.
struct Obstacle {
    text: String,
    image: bool,
}

async fn obstacle(client: &Client, deployment: &Deployment) -> Result<Option<Obstacle>> {
    let namespace = deployment.namespace().unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let labels = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.selector.match_labels.clone())
        .unwrap_or_default();
    let selector: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let params = ListParams::default().labels(&selector.join(","));
    let pods = pods
        .list(&params)
        .await
        .map_err(doing(format!("list the pods in {namespace}")))?;
    Ok(pods.items.iter().find_map(waiting))
}

fn waiting(pod: &Pod) -> Option<Obstacle> {
    let mut statuses = pod.status.as_ref()?.container_statuses.iter().flatten();
    statuses.find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        let image = reason.contains("Image");
        let message = waiting.message.as_deref().unwrap_or_default();
        let hint = if image {
            format!(
                " (`windlass image build --tag {0}` and `windlass image load` bring {0} into the embedded cluster)",
                status.image
            )
        } else {
            String::new()
        };
        Some(Obstacle {
            text: format!("pod {} says {reason}: {message}{hint}", pod.name_any()),
            image,
        })
    })
}
