//! What the columns of pods show: how many of their containers are ready, and what holds them up.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::age;
use crate::table::cell::none;
use crate::table::text::{or, text};

pub(super) fn cell(pod: &Value, column: &str, now: Timestamp) -> Option<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    Some(match column {
        "Ready" | "Status" | "Restarts" => Summary::of(pod).cell(column, now),
        "IP" => {
            let listed = text(&status["podIPs"][0]["ip"]);
            let address = or(listed, &text(&status["podIP"]));
            or(address, "<none>").into()
        }
        "Node" => none(&spec["nodeName"]),
        "Nominated Node" => none(&status["nominatedNodeName"]),
        "Readiness Gates" => gates(pod).into(),
        _ => return None,
    })
}

/// What the cells of a pod are made from.
struct Summary {
    ready: usize,
    total: usize,
    status: String,
    restarts: i64,
    /// When the last of those was.
    restarted: Option<String>,
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn has_condition(pod: &Value, kind: &str) -> bool {
    list(&pod["status"], "conditions")
        .iter()
        .any(|one| one["type"] == kind && one["status"] == "True")
}

/// Why a container ended.
fn ended(terminated: &Value) -> String {
    let signal = terminated["signal"].as_i64().unwrap_or_default();
    match terminated["reason"].as_str() {
        Some(reason) if !reason.is_empty() => reason.to_owned(),
        _ if signal != 0 => format!("Signal:{signal}"),
        _ => format!(
            "ExitCode:{}",
            terminated["exitCode"].as_i64().unwrap_or_default()
        ),
    }
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let mut reason = text(&status["reason"]);
        if reason.is_empty() {
            reason = text(&status["phase"]);
        }
        if list(status, "conditions")
            .iter()
            .any(|one| one["type"] == "PodScheduled" && one["reason"] == "SchedulingGated")
        {
            "SchedulingGated".clone_into(&mut reason);
        }
        let sidecars = list(spec, "initContainers")
            .iter()
            .filter(|one| one["restartPolicy"] == "Always")
            .count();
        let mut summary = Self {
            ready: 0,
            total: list(spec, "containers").len() + sidecars,
            status: reason,
            restarts: 0,
            restarted: None,
        };
        let initializing = summary.read_init(spec, status);
        if !initializing || has_condition(pod, "Initialized") {
            summary.read_main(pod);
        }
        let phase = status["phase"].as_str();
        if pod["metadata"]["deletionTimestamp"].is_string() {
            if status["reason"] == "NodeLost" {
                "Unknown".clone_into(&mut summary.status);
            } else if !matches!(phase, Some("Succeeded" | "Failed")) {
                "Terminating".clone_into(&mut summary.status);
            }
        }
        summary
    }

    fn count_restarts(&mut self, container: &Value) {
        self.restarts += container["restartCount"].as_i64().unwrap_or_default();
        let at = container["lastState"]["terminated"]["finishedAt"].as_str();
        if let Some(at) = at.filter(|at| self.restarted.as_deref().is_none_or(|last| last < *at)) {
            self.restarted = Some(at.to_owned());
        }
    }

    /// The containers before the others; whether the pod is still at them.
    fn read_init(&mut self, spec: &Value, status: &Value) -> bool {
        let stays = |name: &Value| {
            list(spec, "initContainers")
                .iter()
                .any(|one| one["name"] == *name && one["restartPolicy"] == "Always")
        };
        for (index, container) in list(status, "initContainerStatuses").iter().enumerate() {
            self.count_restarts(container);
            let state = &container["state"];
            let terminated = &state["terminated"];
            if terminated.is_object() && terminated["exitCode"].as_i64().unwrap_or_default() == 0 {
                continue;
            }
            if stays(&container["name"]) && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            let waiting = text(&state["waiting"]["reason"]);
            self.status = if terminated.is_object() {
                format!("Init:{}", ended(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", list(spec, "initContainers").len())
            };
            return true;
        }
        false
    }

    fn read_main(&mut self, pod: &Value) {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        // Of the containers before only those that stay count from here on.
        (self.restarts, self.restarted) = (0, None);
        for container in list(status, "initContainerStatuses") {
            let stays = list(spec, "initContainers")
                .iter()
                .any(|one| one["name"] == container["name"] && one["restartPolicy"] == "Always");
            if stays {
                self.count_restarts(container);
            }
        }
        let (mut runs, mut failure) = (false, None);
        for container in list(status, "containerStatuses").iter().rev() {
            self.count_restarts(container);
            let state = &container["state"];
            let waiting = text(&state["waiting"]["reason"]);
            let terminated = &state["terminated"];
            if !waiting.is_empty() {
                self.status = waiting;
            } else if terminated.is_object() {
                self.status = ended(terminated);
                if terminated["exitCode"].as_i64().unwrap_or_default() != 0 {
                    failure = Some(self.status.clone());
                }
            } else if container["ready"] == true && state["running"].is_object() {
                runs = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            if runs && has_condition(pod, "Ready") {
                "Running".clone_into(&mut self.status);
            } else if let Some(failure) = failure {
                self.status = failure;
            } else if runs {
                "NotReady".clone_into(&mut self.status);
            }
        }
    }

    fn cell(&self, column: &str, now: Timestamp) -> Value {
        match column {
            "Ready" => format!("{}/{}", self.ready, self.total).into(),
            "Status" => self.status.as_str().into(),
            _ => match &self.restarted {
                Some(at) if self.restarts != 0 => {
                    format!("{} ({} ago)", self.restarts, age(at, now)).into()
                }
                _ => self.restarts.to_string().into(),
            },
        }
    }
}

/// How many of the gates of a pod are open.
fn gates(pod: &Value) -> String {
    let gates = list(&pod["spec"], "readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| has_condition(pod, gate["conditionType"].as_str().unwrap_or_default()))
        .count();
    format!("{open}/{}", gates.len())
}

/// What a row says about a pod that is over.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}
