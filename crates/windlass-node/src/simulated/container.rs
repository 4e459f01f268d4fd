//! A container that only seems to run.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use windlass::testing::{DueGuard, Environment};

use super::Delays;
use crate::pod::{Health, Termination};
use crate::runtime::{Launch, Report, Reports};

/// What is done to a container.
#[derive(Debug)]
pub(super) enum Command {
    /// It is asked to end, and killed when the time is over.
    Stop(Duration),
    /// It ends now, with this exit code.
    Exit(i32),
    /// It ends now, with this exit code and this termination message.
    Crash(i32, String),
    /// It becomes ready, or stops being so; its own pace does not matter any more.
    Ready(bool),
    /// It loses its network, or has it back: a probe that needs it sees the difference.
    Cut(bool),
}

/// Starts a container; it ends when it is told to or when nobody can tell it anything any more.
pub(super) fn spawn(
    launch: Launch,
    delays: Delays,
    environment: Environment,
    reports: Reports,
) -> UnboundedSender<Command> {
    let (sender, commands) = unbounded_channel();
    let container = SimulatedContainer {
        launch,
        delays,
        environment,
        reports,
    };
    // Counted from now, and not from when the task first runs, so that nothing looks settled.
    let start = container.due(delays.start, "start");
    tokio::spawn(container.run(start, commands));
    sender
}

struct SimulatedContainer {
    launch: Launch,
    delays: Delays,
    environment: Environment,
    reports: Reports,
}

/// What a container does next by itself.
enum Next {
    Ready(DueGuard),
    Exit(i32, DueGuard),
    Nothing,
}

impl SimulatedContainer {
    async fn run(self, start: DueGuard, mut commands: UnboundedReceiver<Command>) {
        sleep_until(start.at()).await;
        let started_at = self.environment.clock.now();
        let container = self.launch.container.name.clone();
        let ready = self.delays.ready.is_zero() && !self.is_init();
        self.reports.report(Report::Started {
            container: container.clone(),
            id: format!(
                "simulated://{}/{container}/{}",
                self.launch.uid(),
                self.launch.run
            ),
            image_id: format!(
                "simulated://{}",
                self.launch.container.image.as_deref().unwrap_or("")
            ),
            health: Some(Health {
                started: true,
                ready,
                unhealthy: None,
            }),
            at: started_at,
        });
        drop(start);
        let mut next = if ready {
            Next::Nothing
        } else if self.is_init() {
            Next::Exit(0, self.due(self.delays.ready, "end"))
        } else {
            Next::Ready(self.due(self.delays.ready, "readiness"))
        };
        let mut message = None;
        let code = loop {
            let at = match &next {
                Next::Ready(due) | Next::Exit(_, due) => Some(due.at()),
                Next::Nothing => None,
            };
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    // The pod was torn down: there is nobody left to tell.
                    None => return,
                    Some(Command::Exit(code)) => break code,
                    Some(Command::Crash(code, text)) => {
                        message = Some(text);
                        break code;
                    }
                    Some(Command::Ready(ready)) => {
                        self.probed(ready);
                        if let Next::Ready(_) = next {
                            next = Next::Nothing;
                        }
                    }
                    Some(Command::Cut(cut)) => {
                        if self.is_probed_by_network() && !self.is_init() {
                            self.probed(!cut);
                            next = Next::Nothing;
                        }
                    }
                    Some(Command::Stop(grace)) => {
                        // What has no time to end by itself is killed.
                        let (after, code) = if self.delays.stop < grace {
                            (self.delays.stop, 0)
                        } else {
                            (grace, 137)
                        };
                        let sooner = match &next {
                            Next::Exit(_, due) => due.at() > Instant::now() + after,
                            Next::Ready(_) | Next::Nothing => true,
                        };
                        if sooner {
                            next = Next::Exit(code, self.due(after, "end"));
                        }
                    }
                },
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => match next {
                    Next::Exit(code, _due) => break code,
                    Next::Ready(_due) => {
                        self.probed(true);
                        next = Next::Nothing;
                    }
                    Next::Nothing => {}
                },
            }
        };
        let finished_at = self.environment.clock.now();
        let termination = Termination {
            message,
            ..Termination::exited(code, started_at, finished_at)
        };
        self.reports.report(Report::Exited {
            container,
            run: self.launch.run,
            termination,
        });
    }

    fn due(&self, after: Duration, what: &str) -> DueGuard {
        let name = self.launch.pod.metadata.name.as_deref().unwrap_or_default();
        let what = format!(
            "{what} of container {} of pod {name}",
            self.launch.container.name
        );
        self.environment.activity.due(Instant::now() + after, what)
    }

    fn probed(&self, ready: bool) {
        self.reports.report(Report::Probed {
            container: self.launch.container.name.clone(),
            run: self.launch.run,
            health: Health {
                started: true,
                ready,
                unhealthy: None,
            },
        });
    }

    /// Whether its readiness is asked for over the network.
    fn is_probed_by_network(&self) -> bool {
        let probe = self.launch.container.readiness_probe.as_ref();
        probe.is_some_and(|probe| probe.exec.is_none())
    }

    /// Whether it is an init container that does its work and ends.
    fn is_init(&self) -> bool {
        let container = &self.launch.container;
        let spec = self.launch.pod.spec.as_ref();
        container.restart_policy.as_deref() != Some("Always")
            && spec
                .and_then(|spec| spec.init_containers.as_deref())
                .is_some_and(|init| init.iter().any(|init| init.name == container.name))
    }
}
