//! The widget operator on kube-runtime, in two forms: as its documentation would write it (the
//! Deployment is applied on every reconcile), and with `--store`, tuned by hand (a typed store of
//! Deployments, and an apply only where it shows a difference).

use std::{sync::Arc, time::Duration};

use bench_framework::{WORKERS, Widget, deployment_for, status_of};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        controller::{self, Action, Config, Controller, ReconcileRequest},
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde_json::json;

const MANAGER: &str = "widgets";

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Kube(#[from] kube::Error),
    #[error("{0}")]
    Watch(#[from] watcher::Error),
}

struct Operator {
    client: Client,
    /// What is known of Deployments, where that is looked at.
    deployments: Option<Store<Deployment>>,
}

async fn reconcile(widget: Arc<Widget>, operator: Arc<Operator>) -> Result<Action, Error> {
    let (name, namespace) = (widget.name_any(), widget.namespace().unwrap_or_default());
    let mut wanted = deployment_for(&widget);
    wanted.metadata.owner_references = widget.controller_owner_ref(&()).map(|one| vec![one]);
    let known = operator.deployments.as_ref().and_then(|store| {
        let found = store.get(&ObjectRef::new(&name).within(&namespace));
        found.filter(|found| is_as_wanted(found, &widget))
    });
    let deployment = if let Some(known) = known {
        known
    } else {
        let api: Api<Deployment> = Api::namespaced(operator.client.clone(), &namespace);
        let params = PatchParams::apply(MANAGER).force();
        Arc::new(api.patch(&name, &params, &Patch::Apply(&wanted)).await?)
    };
    let status = status_of(&widget, Some(&deployment));
    if widget.status.as_ref() != Some(&status) {
        let api: Api<Widget> = Api::namespaced(operator.client.clone(), &namespace);
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&name, &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

/// Whether a Deployment shows what may differ between two reconciles.
fn is_as_wanted(found: &Deployment, widget: &Widget) -> bool {
    let Some(spec) = &found.spec else {
        return false;
    };
    let containers = spec.template.spec.as_ref().map(|pod| &pod.containers);
    let image = containers.and_then(|all| all.first()?.image.as_deref());
    spec.replicas == Some(widget.spec.replicas) && image == Some(widget.spec.image.as_str())
}

fn on_error(_: Arc<Widget>, error: &Error, _: Arc<Operator>) -> Action {
    eprintln!("widgets: {error}");
    Action::requeue(Duration::from_secs(1))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::try_default().await?;
    let config = Config::default().concurrency(WORKERS);
    let widgets: Api<Widget> = Api::all(client.clone());
    let deployments: Api<Deployment> = Api::all(client.clone());
    if std::env::args().any(|arg| arg == "--store") {
        let (store, writer) = reflector::store();
        let (known, of_deployments) = reflector::store();
        let changed = reflector::reflector(writer, watcher(widgets, watcher::Config::default()))
            .default_backoff()
            .touched_objects()
            .map_ok(|widget| ReconcileRequest::from(ObjectRef::from_obj(&widget)));
        let owned = reflector::reflector(
            of_deployments,
            watcher(deployments, watcher::Config::default()),
        )
        .default_backoff()
        .touched_objects()
        .map_ok(|deployment| stream::iter(owner_of(&deployment).map(Ok)))
        .try_flatten();
        let operator = Operator {
            client,
            deployments: Some(known),
        };
        let queue = stream::select(changed, owned);
        let runs = controller::applier(
            |widget, operator| Box::pin(reconcile(widget, operator)),
            on_error,
            Arc::new(operator),
            store,
            queue.map_err(Error::from),
            config,
        );
        end(runs).await;
    } else {
        let operator = Operator {
            client,
            deployments: None,
        };
        let runs = Controller::new(widgets, watcher::Config::default())
            .owns(deployments, watcher::Config::default())
            .with_config(config)
            .run(reconcile, on_error, Arc::new(operator));
        end(runs).await;
    }
    Ok(())
}

fn owner_of(deployment: &Deployment) -> Option<ReconcileRequest<Widget>> {
    let owner = deployment
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true) && owner.kind == Widget::kind(&()))?;
    let namespace = deployment.namespace().unwrap_or_default();
    Some(ObjectRef::new(&owner.name).within(&namespace).into())
}

async fn end<T>(runs: impl Stream<Item = T>) {
    let ended = tokio::signal::ctrl_c();
    let run = runs.for_each(|_| async {});
    futures::future::select(Box::pin(ended), Box::pin(run)).await;
}
