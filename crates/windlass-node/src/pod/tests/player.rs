//! Plays the runtime and the API server for the pod of a test.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, Pod, PodStatus};
use serde_json::{Value, json};

use super::super::*;

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).expect("a time")
}

pub(super) fn pod(spec: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 1},
        "spec": spec,
    }))
    .expect("a pod")
}

pub(super) fn plain() -> Pod {
    pod(&json!({"containers": [{"name": "main", "image": "memcached:1"}]}))
}

/// Plays the runtime: everything that is asked for happens at once.
pub(super) struct Player {
    pub(super) pod: Pod,
    pub(super) record: Record,
    pub(super) now: Timestamp,
    pub(super) starts: Vec<String>,
}

impl Player {
    pub(super) fn new(pod: Pod) -> Self {
        let mut record = Record::of(&pod, at(0));
        record.address = Some([127, 64, 0, 1].into());
        Self {
            pod,
            record,
            now: at(0),
            starts: Vec::new(),
        }
    }

    pub(super) fn image(&self, name: &str) -> String {
        let all = init_containers(&self.pod)
            .iter()
            .chain(containers(&self.pod));
        all.filter(|c| c.name == name)
            .find_map(|c| c.image.clone())
            .unwrap_or_default()
    }

    /// Does what is planned until nothing is, and returns what was left.
    pub(super) fn run(&mut self) -> Plan {
        for _ in 0..20 {
            let plan = plan(&self.pod, &self.record, self.now);
            if plan.actions.is_empty() || plan.actions == [Action::Delete] {
                self.report();
                return plan;
            }
            for action in plan.actions {
                match action {
                    Action::Start(name) => {
                        let run = self.record.starting(&name, &self.image(&name));
                        let id = format!("test://{name}/{run}");
                        self.record.started(
                            &name,
                            id,
                            "image".into(),
                            Health::good(),
                            false,
                            self.now,
                        );
                        self.starts.push(name);
                    }
                    Action::Stop {
                        container, grace, ..
                    } => {
                        self.record.stopping(&container, self.now + grace);
                    }
                    Action::Delete => panic!("deleted while something else was to be done"),
                }
            }
        }
        panic!("the plan never comes to an end");
    }

    pub(super) fn exit(&mut self, name: &str, code: i32) {
        let known = self.record.container(name);
        let State::Running(run) = &known.state else {
            panic!("{name} does not run")
        };
        let termination = Termination::exited(code, run.started_at, self.now);
        let restarts = known.restarts;
        assert!(self.record.exited(name, restarts, termination));
    }

    pub(super) fn advance(&mut self, seconds: i64) {
        self.now += Duration::from_secs(seconds.unsigned_abs());
    }

    /// Plays the API server: what the node says replaces what it said before, by condition type.
    pub(super) fn report(&mut self) {
        let mut said = self.status();
        let before = self.pod.status.take().unwrap_or_default();
        let conditions = said.conditions.get_or_insert_default();
        for condition in before.conditions.into_iter().flatten() {
            if !conditions.iter().any(|own| own.type_ == condition.type_) {
                conditions.push(condition);
            }
        }
        self.pod.status = Some(PodStatus {
            qos_class: before.qos_class,
            ..said
        });
    }

    pub(super) fn status(&self) -> PodStatus {
        status(&self.pod, &self.record, "127.0.0.1", self.now)
    }

    pub(super) fn phase(&self) -> String {
        self.status().phase.expect("a phase")
    }

    pub(super) fn condition(&self, type_: &str) -> (String, Option<String>) {
        let conditions = self.status().conditions.unwrap_or_default();
        let found = conditions
            .into_iter()
            .find(|condition| condition.type_ == type_);
        found
            .map(|condition| (condition.status, condition.reason))
            .expect("the condition")
    }

    pub(super) fn state(&self, index: usize) -> ContainerState {
        let statuses = self.status().container_statuses.expect("statuses");
        statuses[index].state.clone().expect("a state")
    }

    pub(super) fn waiting(&self, index: usize) -> String {
        self.state(index)
            .waiting
            .and_then(|waiting| waiting.reason)
            .expect("a reason to wait")
    }
}
