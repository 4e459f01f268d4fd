//! What every operator is put through, in this order: it starts with nothing to do; widgets are
//! created all at once; all of them are changed; nothing happens for a while; single widgets are
//! changed, one after the other; it is killed and started again; and it holds many Deployments that
//! are none of its business.

use std::time::{Duration, Instant};

use bench_framework::Widget;
use futures::{Stream, StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::json;

use crate::{
    Anything,
    count::Requests,
    process::{Memory, Subject},
    world::{World, name},
};

/// How much of everything.
pub(crate) struct Rounds {
    pub(crate) widgets: u32,
    pub(crate) singles: u32,
    pub(crate) cached: u32,
    pub(crate) idle_seconds: u32,
    /// How often everything is done.
    pub(crate) times: u32,
}

/// What one operator took in one round.
#[derive(Debug, Default)]
pub(crate) struct Play {
    /// With nothing to hold.
    pub(crate) empty: Memory,
    /// With all widgets and their Deployments.
    pub(crate) converged: Memory,
    pub(crate) converge: Phase,
    pub(crate) change: Phase,
    pub(crate) single: Phase,
    pub(crate) restart: Phase,
    /// Seconds of CPU for each second of nothing.
    pub(crate) idle: f64,
    pub(crate) idle_requests: Requests,
    /// Seconds from a change to the watch event of its effect, in order.
    pub(crate) latencies: Vec<f64>,
    /// KiB for each Deployment that is only held.
    pub(crate) cached: f64,
}

/// What one thing took.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
    pub(crate) requests: Requests,
}

impl Rounds {
    /// Puts an operator through everything but the last.
    pub(crate) async fn play(&self, world: &World, subject: &Subject) -> Anything<Play> {
        let process = subject.start()?;
        let mut used = process.calm().await?;
        let mut play = Play {
            empty: process.memory()?,
            ..Play::default()
        };

        let (begun, before) = (Instant::now(), world.requests().await?);
        world.create_widgets(self.widgets).await?;
        self.until_converged(world, "widget:1").await?;
        play.converge.wall = begun.elapsed().as_secs_f64();
        let now = process.calm().await?;
        play.converge.cpu = now - used;
        play.converge.requests = world.requests().await? - before;
        play.converged = process.memory()?;
        used = now;

        let (begun, before) = (Instant::now(), world.requests().await?);
        world.change_widgets(self.widgets, "widget:2").await?;
        self.until_converged(world, "widget:2").await?;
        play.change.wall = begun.elapsed().as_secs_f64();
        used = {
            let now = process.calm().await?;
            play.change.cpu = now - used;
            now
        };
        play.change.requests = world.requests().await? - before;

        let before = world.requests().await?;
        tokio::time::sleep(Duration::from_secs(self.idle_seconds.into())).await;
        let now = process.cpu()?;
        play.idle = (now - used) / f64::from(self.idle_seconds);
        play.idle_requests = world.requests().await? - before;
        used = now;

        let before = world.requests().await?;
        play.latencies = self.singles(world).await?;
        play.single.cpu = process.calm().await? - used;
        play.single.requests = world.requests().await? - before;
        process.stop().await?;

        let before = world.requests().await?;
        let process = subject.start()?;
        play.restart.cpu = process.calm().await?;
        play.restart.requests = world.requests().await? - before;
        process.stop().await?;
        Ok(play)
    }

    /// How much an operator's memory grows by each Deployment that is there when it starts.
    pub(crate) async fn hold(&self, subject: &Subject, empty: Memory) -> Anything<f64> {
        let process = subject.start()?;
        process.calm().await?;
        let full = process.memory()?;
        process.stop().await?;
        Ok((full.data - empty.data) / f64::from(self.cached))
    }

    /// Waits until every widget's Deployment and status say this image and generation. Asked by
    /// lists with pauses between them: a watch of all of it would take CPU from what is measured.
    async fn until_converged(&self, world: &World, image: &str) -> Anything<()> {
        let limit = Instant::now() + Duration::from_mins(3);
        let wanted = usize::try_from(self.widgets)?;
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            // From the server's own cache: cheap, and late by milliseconds only.
            let cached = ListParams::default().match_any();
            let widgets = world.widgets().list(&cached).await?.items;
            let done = widgets.iter().filter(|widget| is_done(widget)).count();
            if done >= wanted {
                let deployments = world.deployments().list(&cached).await?.items;
                let done = deployments.iter().filter(|one| runs(one, image)).count();
                if done >= wanted {
                    return Ok(());
                }
            }
            if Instant::now() > limit {
                return Err(format!("only {done} of {} widgets converged", self.widgets).into());
            }
        }
    }

    /// Changes one widget after the other; how long each took until its Deployment had changed.
    async fn singles(&self, world: &World) -> Anything<Vec<f64>> {
        let deployments = world.deployments();
        let one = ListParams::default().limit(1);
        let version = deployments
            .list_metadata(&one)
            .await?
            .metadata
            .resource_version
            .unwrap_or_default();
        let events = deployments.watch(&WatchParams::default(), &version).await?;
        pin_mut!(events);
        let mut latencies = Vec::new();
        for nth in 0..self.singles {
            let image = format!("widget:single-{nth}");
            let widget = name(nth % self.widgets);
            let begun = Instant::now();
            change(&world.widgets(), &widget, &image).await?;
            let seen = until_runs(&mut events, &image);
            tokio::time::timeout(Duration::from_secs(10), seen)
                .await
                .map_err(|_| format!("{widget} was not seen to change"))??;
            latencies.push(begun.elapsed().as_secs_f64());
            // Each change finds the operator at rest.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        latencies.sort_by(f64::total_cmp);
        Ok(latencies)
    }
}

async fn change(widgets: &Api<Widget>, name: &str, image: &str) -> Anything<()> {
    let patch = Patch::Merge(json!({ "spec": { "image": image } }));
    widgets.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn until_runs(
    events: &mut (impl Stream<Item = kube::Result<WatchEvent<Deployment>>> + Unpin),
    image: &str,
) -> Anything<()> {
    while let Some(event) = events.next().await {
        if let WatchEvent::Modified(deployment) = event?
            && runs(&deployment, image)
        {
            return Ok(());
        }
    }
    Err("the watch ended".into())
}

fn is_done(widget: &Widget) -> bool {
    let observed = widget
        .status
        .as_ref()
        .map(|status| status.observed_generation);
    observed == widget.metadata.generation
}

fn runs(deployment: &Deployment, image: &str) -> bool {
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let container = pod.and_then(|pod| pod.containers.first());
    container.and_then(|one| one.image.as_deref()) == Some(image)
}
