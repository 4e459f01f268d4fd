//! One run of a container in a pod's sandbox, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::bundle::{self, Place};
use super::runtime::{Live, Shared};
use crate::pod::Termination;
use crate::program::Obstacle;
use crate::runtime::{Launch, Report, Reports};
use crate::shim::{Event, Held, Request, Shim, Start};

/// SIGTERM and SIGKILL.
const TERM: i32 = 15;
const KILL: i32 = 9;

/// Runs a container to its end and reports on it.
pub(super) async fn run(shared: Arc<Shared>, launch: Launch, reports: Reports) {
    match start(&shared, &launch, &reports).await {
        Ok(attendance) => attendance.attend(&shared, &reports).await,
        Err(obstacle) => obstacle.report(&launch, &reports, shared.clock().now()),
    }
}

/// A container that runs, and the news of it.
pub(super) struct Attendance {
    uid: String,
    container: String,
    run: i32,
    started_at: Timestamp,
    shim: Arc<Shim>,
    news: mpsc::UnboundedReceiver<Event>,
    stops: mpsc::UnboundedReceiver<Duration>,
    ended: watch::Sender<bool>,
}

async fn start(
    shared: &Shared,
    launch: &Launch,
    reports: &Reports,
) -> Result<Attendance, Obstacle> {
    let (uid, name) = (launch.uid(), launch.container.name.as_str());
    let failed = |error: std::io::Error| Obstacle::Execution(error.to_string());
    let shim = shared
        .shim(uid)
        .ok_or_else(|| Obstacle::Execution("the pod's sandbox is gone".to_owned()))?;
    let (program, note, lower, working_dir) = shared.program(launch).await?;
    if let Some(note) = note.filter(|_| launch.run == 0) {
        reports.report(Report::Note(note));
    }
    if launch.user.uid.or(program.user).unwrap_or_default() == 0 && must_not_be_root(launch) {
        let why = "container has runAsNonRoot and image will run as root".to_owned();
        return Err(Obstacle::Configuration(why));
    }
    let store = &shared.store;
    let bundle = store.bundle(uid, name, launch.run);
    std::fs::create_dir_all(&bundle).map_err(failed)?;
    store.prune_logs(uid, name, launch.run);
    let id = Shared::id(uid, name, launch.run);
    let place = Place {
        etc: &store.pod(uid).join("etc"),
        hidden: &shared.hidden,
        cgroup: format!("/{}/{id}", shared.bridge.name),
        working_dir,
    };
    let description = bundle::describe(launch, &program, &place);
    let text = serde_json::to_vec(&description).map_err(|error| failed(error.into()))?;
    std::fs::write(bundle.join("config.json"), text).map_err(failed)?;
    let mut news = shim.follow(name, launch.run);
    shim.ask(Request::Start(Start {
        container: name.to_owned(),
        run: launch.run,
        id: id.clone(),
        image_id: program.image_id.clone(),
        bundle,
        lower,
        log: store.log(uid, name, launch.run),
        stdin: launch.container.stdin == Some(true),
    }));
    let at = match news.recv().await {
        Some(Event::Started { at, .. }) => at,
        Some(Event::Failed { message, .. }) => return Err(Obstacle::Execution(message)),
        _ => return Err(Obstacle::Execution("the pod's shim is gone".to_owned())),
    };
    let held = Held {
        container: name.to_owned(),
        run: launch.run,
        id,
        image_id: program.image_id,
        pid: 0,
        started_at: at,
        exit: None,
    };
    let attendance = Attendance::of(shared, uid, &held, shim, news);
    reports.report(Report::Started {
        container: held.container,
        id: format!("{}://{}", shared.oci_name(), held.id),
        image_id: held.image_id,
        health: None,
        at,
    });
    Ok(attendance)
}

impl Attendance {
    /// Makes a container that runs known, so that it can be stopped.
    pub(super) fn of(
        shared: &Shared,
        uid: &str,
        held: &Held,
        shim: Arc<Shim>,
        news: mpsc::UnboundedReceiver<Event>,
    ) -> Self {
        let (stop, stops) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(false);
        let live = Live {
            run: held.run,
            stop,
            ended: end,
        };
        if !shared.live(uid, &held.container, live) {
            shim.ask(Request::Signal {
                container: held.container.clone(),
                run: held.run,
                signal: KILL,
            });
        }
        Self {
            uid: uid.to_owned(),
            container: held.container.clone(),
            run: held.run,
            started_at: held.started_at,
            shim,
            news,
            stops,
            ended,
        }
    }

    fn signal(&self, signal: i32) {
        self.shim.ask(Request::Signal {
            container: self.container.clone(),
            run: self.run,
            signal,
        });
    }

    /// Waits for the end, stopping as asked.
    pub(super) async fn attend(mut self, shared: &Shared, reports: &Reports) {
        let mut kill_at: Option<Instant> = None;
        let mut asked = false;
        let end = loop {
            let killing = kill_at.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                news = self.news.recv() => match news {
                    Some(Event::Exited { code, at, .. }) => break Some((code, at)),
                    Some(_) => {}
                    None => break None,
                },
                Some(grace) = self.stops.recv() => {
                    if !asked && !grace.is_zero() {
                        self.signal(TERM);
                    }
                    asked = true;
                    let at = Instant::now() + grace;
                    kill_at = Some(kill_at.map_or(at, |before| before.min(at)));
                }
                () = tokio::time::sleep_until(killing), if kill_at.is_some() => {
                    self.signal(KILL);
                    kill_at = None;
                }
            }
        };
        let termination = if let Some((code, at)) = end {
            Termination::exited(code, self.started_at, at)
        } else {
            // Without its shim a pod has no namespaces to be restarted in.
            shared.lost(&self.uid, &self.shim).await;
            Termination::lost(Some(self.started_at), shared.clock().now())
        };
        shared.dead(&self.uid, &self.container, self.run);
        self.shim.ask(Request::Forget {
            container: self.container.clone(),
            run: self.run,
        });
        reports.report(Report::Exited {
            container: self.container,
            run: self.run,
            termination,
        });
        let _ = self.ended.send(true);
    }
}

/// Whether the container, or its pod for it, refuses to run as root.
fn must_not_be_root(launch: &Launch) -> bool {
    let own = launch.container.security_context.as_ref();
    let spec = launch.pod.spec.as_ref();
    let shared = spec.and_then(|spec| spec.security_context.as_ref());
    own.and_then(|context| context.run_as_non_root)
        .or_else(|| shared?.run_as_non_root)
        .unwrap_or_default()
}
