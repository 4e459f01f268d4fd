//! One run of a container, from its start to its end, as the node attends to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Containment;
use super::pods::{Live, Pods};
use crate::pod::Termination;
use crate::program::Obstacle;
use crate::runtime::{Launch, Report, Reports};
use crate::shim::{Event, Held, Request, Shim, Start};

/// SIGTERM and SIGKILL.
const TERM: i32 = 15;
pub(super) const KILL: i32 = 9;

/// Runs a container to its end and reports on it.
pub(super) async fn run<C: Containment>(pods: Arc<Pods<C>>, launch: Launch, reports: Reports) {
    match start(&pods, &launch, &reports).await {
        Ok(attendance) => attendance.attend(&pods, &reports).await,
        Err(obstacle) => obstacle.report(&launch, &reports, pods.clock().now()),
    }
}

/// The runtime's name for a run.
pub(super) fn id(uid: &str, container: &str, run: i32) -> String {
    format!("{uid}.{container}.{run}")
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
    visited: Arc<AtomicBool>,
}

async fn start<C: Containment>(
    pods: &Pods<C>,
    launch: &Launch,
    reports: &Reports,
) -> Result<Attendance, Obstacle> {
    let (uid, name) = (launch.uid(), launch.container.name.as_str());
    let shim = pods
        .shim(uid)
        .ok_or_else(|| Obstacle::Execution("the pod's shim is gone".to_owned()))?;
    let folder = pods.store.run(uid, name, launch.run);
    std::fs::create_dir_all(&folder)?;
    pods.store.prune_logs(uid, name, launch.run);
    let described = pods.containment.describe(launch, &folder, reports).await;
    let described = described.inspect_err(|_| {
        let _ = std::fs::remove_dir_all(&folder);
    })?;
    let mut news = shim.follow(name, launch.run);
    shim.ask(Request::Start(Start {
        container: name.to_owned(),
        run: launch.run,
        id: id(uid, name, launch.run),
        image_id: described.image_id,
        folder,
        lower: described.lower,
        parts: described.parts,
        log: pods.store.log(uid, name, launch.run),
        stdin: launch.container.stdin == Some(true),
        stdin_once: launch.container.stdin_once == Some(true),
        terminal: launch.container.tty == Some(true),
    }));
    let held = match news.recv().await {
        Some(Event::Started(held)) => held,
        Some(Event::Failed { message, .. }) => return Err(Obstacle::Execution(message)),
        _ => return Err(Obstacle::Execution("the pod's shim is gone".to_owned())),
    };
    let attendance = Attendance::of(pods, uid, &held, shim, news);
    reports.report(Report::Started {
        container: held.container,
        id: format!("{}://{}", pods.containment.scheme(), held.id),
        image_id: held.image_id,
        health: None,
        at: held.started_at,
    });
    Ok(attendance)
}

impl Attendance {
    /// Makes a container that runs known, so that it can be stopped.
    pub(super) fn of<C: Containment>(
        pods: &Pods<C>,
        uid: &str,
        held: &Held,
        shim: Arc<Shim>,
        news: mpsc::UnboundedReceiver<Event>,
    ) -> Self {
        let (stop, stops) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(false);
        let visited = Arc::new(AtomicBool::new(false));
        let live = Live {
            run: held.run,
            stdin: held.stdin,
            terminal: held.terminal,
            stop,
            ended: end,
            visited: visited.clone(),
        };
        let attendance = Self {
            uid: uid.to_owned(),
            container: held.container.clone(),
            run: held.run,
            started_at: held.started_at,
            shim,
            news,
            stops,
            ended,
            visited,
        };
        if !pods.live(uid, &held.container, live) {
            attendance.signal(KILL);
        }
        attendance
    }

    fn signal(&self, signal: i32) {
        self.shim.ask(Request::Signal {
            container: self.container.clone(),
            run: self.run,
            signal,
        });
    }

    /// Waits for the end, stopping as asked.
    pub(super) async fn attend<C: Containment>(mut self, pods: &Pods<C>, reports: &Reports) {
        let mut kill_at: Option<Instant> = None;
        let mut asked = false;
        let end = loop {
            let killing = kill_at.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                news = self.news.recv() => match news {
                    Some(Event::Exited { exit, .. }) => break Some(exit),
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
        let termination = if let Some(exit) = end {
            if self.visited.load(Ordering::Relaxed) {
                pods.containment.forsake(&self.uid, &self.container).await;
            }
            exit.termination(self.started_at)
        } else {
            // Without its shim a pod has nothing to be restarted in.
            pods.lost(&self.uid, &self.shim).await;
            Termination::lost(Some(self.started_at), pods.clock().now())
        };
        pods.dead(&self.uid, &self.container, self.run);
        reports.report(Report::Exited {
            container: self.container,
            run: self.run,
            termination,
        });
        let _ = self.ended.send(true);
    }
}
