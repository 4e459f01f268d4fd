//! One run of a container as a child process, from its start to its end.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::place::{Place, Spawned};
use super::runtime::{Live, Shared};
use super::tree::{self, CONTAINER_MARK, Leader, Marks};
use super::volumes;
use crate::log::{Stream, Writer};
use crate::pod::Termination;
use crate::program::{Found, Obstacle};
use crate::runtime::{Launch, Note, Output, Report, Reports, User};

/// How long to wait for the last output of a container whose processes are all gone.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs a container to its end and reports on it.
pub(super) async fn run(shared: Arc<Shared>, launch: Launch, reports: Reports) {
    match start(&shared, &launch, &reports).await {
        Ok(started) => started.attend(&shared, &launch, &reports).await,
        Err(obstacle) => obstacle.report(&launch, &reports, shared.clock().now()),
    }
}

/// A container whose process exists.
struct Started {
    child: Child,
    leader: Leader,
    marks: Marks,
    log: Writer,
    output: JoinHandle<()>,
    stops: mpsc::UnboundedReceiver<Duration>,
    since: jiff::Timestamp,
}

async fn start(shared: &Shared, launch: &Launch, reports: &Reports) -> Result<Started, Obstacle> {
    let (uid, name) = (launch.uid(), launch.container.name.as_str());
    let folder = shared.store.container(uid, name);
    let work = folder.join("work");
    std::fs::create_dir_all(&work)?;
    if let Some(uid) = launch.user.uid.filter(|_| shared.as_root) {
        rustix::fs::chown(&work, Some(rustix::fs::Uid::from_raw(uid)), None)
            .map_err(io::Error::from)?;
    }
    let Found {
        mut program,
        path,
        note,
    } = shared.programs.find(launch).await?;
    if let Some(note) = note {
        reports.report(Report::Note(note));
    }
    let mark = Shared::mark(uid, name);
    program.environment.set(CONTAINER_MARK, mark.as_str());
    volumes::provide(launch, &mut program.environment, reports);
    shared.store.prune_logs(uid, name, launch.run);
    let log = Writer::create(&shared.store.log(uid, name, launch.run), shared.clock())?;

    // Nobody but root can become somebody else.
    let user = if shared.as_root {
        launch.user.clone()
    } else {
        User::default()
    };
    let place = Place {
        folder: folder_of(launch, &work, &user, reports),
        environment: program.environment,
        user,
    };
    let container = &launch.container;
    let (tty, stdin) = (container.tty == Some(true), container.stdin == Some(true));
    let spawned = place.spawn(&path, &program.argv[1..], tty, stdin);
    let Spawned {
        child,
        stdin,
        stdout,
        stderr,
        terminal,
    } = spawned
        .map_err(|error| Obstacle::Execution(format!("exec: \"{}\": {error}", program.argv[0])))?;
    let started_at = shared.clock().now();
    // Not reaped yet, so its number is its own, whether it still runs or not.
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let leader = pid.and_then(Leader::of);
    let leader = leader.ok_or_else(|| Obstacle::Execution("the process is gone".to_owned()))?;
    shared.store.started(uid, name, leader)?;

    let marks = Marks::new(CONTAINER_MARK, &mark, Some(leader));
    let (stop, stops) = mpsc::unbounded_channel();
    let live = Live {
        run: launch.run,
        stop,
        leader,
        progress: log.progress(),
        place,
        stdin: stdin.map(|input| Arc::new(Mutex::new(Some(input)))),
        stdin_once: container.stdin_once == Some(true),
        voice: log.voice().clone(),
        terminal,
    };
    if !shared.live(uid, name, live) {
        marks.kill().await;
        return Err(Obstacle::Execution("the pod is gone".to_owned()));
    }
    let output = tokio::spawn(copy(log.clone(), stdout, stderr));
    reports.report(Report::Started {
        container: name.to_owned(),
        id: format!("process://{uid}/{name}/{}", launch.run),
        image_id: program.image_id,
        health: None,
        at: started_at,
    });
    Ok(Started {
        child,
        leader,
        marks,
        log,
        output,
        stops,
        since: started_at,
    })
}

/// Copies what a container writes into its log, until every process of it has closed its end.
async fn copy(log: Writer, out: Option<Output>, error: Option<Output>) {
    let (out, error) = futures::join!(
        async {
            match out {
                Some(pipe) => log.drain(Stream::Stdout, pipe).await,
                None => Ok(()),
            }
        },
        async {
            match error {
                Some(pipe) => log.drain(Stream::Stderr, pipe).await,
                None => Ok(()),
            }
        },
    );
    if let Err(error) = out.and(error) {
        tracing::warn!(%error, "cannot write the log of a container");
    }
}

impl Started {
    /// Waits for the end, probing and stopping as asked, and leaves no process behind.
    async fn attend(mut self, shared: &Shared, launch: &Launch, reports: &Reports) {
        let (uid, name) = (launch.uid(), launch.container.name.as_str());
        let ended = {
            let mut kill_at: Option<Instant> = None;
            loop {
                let killing = kill_at.unwrap_or_else(Instant::now);
                tokio::select! {
                    biased;
                    ended = self.child.wait() => break ended,
                    Some(grace) = self.stops.recv() => {
                        if kill_at.is_none() && !grace.is_zero() {
                            tree::terminate(self.leader);
                        }
                        let at = Instant::now() + grace;
                        kill_at = Some(kill_at.map_or(at, |before| before.min(at)));
                    }
                    () = tokio::time::sleep_until(killing), if kill_at.is_some() => {
                        self.marks.kill().await;
                        kill_at = None;
                    }
                }
            }
        };
        let finished_at = shared.clock().now();
        // What the first process leaves behind ends with it, as in a PID namespace.
        self.marks.kill().await;
        if tokio::time::timeout(LAST_WORDS, &mut self.output)
            .await
            .is_err()
        {
            self.output.abort();
        }
        shared.store.ended(uid, name);
        shared.dead(uid, name, launch.run);
        // Whoever waits for the end of everything waits for this.
        self.log.end();
        let termination = match ended {
            Ok(status) => Termination::exited(exit_code(status), self.since, finished_at),
            Err(error) => Termination {
                message: Some(format!("cannot wait for the process: {error}")),
                ..Termination::exited(137, self.since, finished_at)
            },
        };
        reports.report(Report::Exited {
            container: name.to_owned(),
            run: launch.run,
            termination,
        });
    }
}

/// The exit code as Kubernetes reports it: a signal counts as 128 and its number.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}

/// The folder a container works in: the one it asks for where the machine has it, or one of its
/// own.
fn folder_of(launch: &Launch, work: &Path, user: &User, reports: &Reports) -> PathBuf {
    let wanted = launch.container.working_dir.as_deref().map(Path::new);
    let reached = |path: &Path| path.is_dir() && user.uid.is_none_or(|uid| reaches(uid, path));
    let folder = [wanted.unwrap_or(work), work, Path::new("/")]
        .into_iter()
        .find(|path| reached(path))
        .unwrap_or(work);
    if launch.run == 0 && folder != wanted.unwrap_or(work) {
        let message = format!(
            "container {} works in {} instead of {}: its user cannot enter that folder of this \
             machine, and the process runtime gives containers no file system of their own",
            launch.container.name,
            folder.display(),
            wanted.unwrap_or(work).display()
        );
        reports.report(Report::Note(Note::warning("OtherWorkingDir", message)));
    }
    folder.to_owned()
}

/// Whether a user who is not root can enter a folder.
fn reaches(uid: u32, path: &Path) -> bool {
    uid == 0
        || path.ancestors().all(|folder| {
            std::fs::metadata(folder).is_ok_and(|found| {
                found.mode() & 0o001 != 0 || (found.uid() == uid && found.mode() & 0o100 != 0)
            })
        })
}
