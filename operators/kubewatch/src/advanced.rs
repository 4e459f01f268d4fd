//! kubewatch's `ADVANCED_FILTERS`: of events only warnings and evictions, of jobs and pods only what
//! changes what is wanted or goes wrong.

use serde_json::Value;

use crate::notice::{Notice, Reason};

pub(crate) fn passes(notice: &Notice) -> bool {
    let Some(object) = notice.object.as_deref() else {
        return true;
    };
    let changes_spec = notice
        .old
        .as_ref()
        .is_none_or(|old| old["spec"] != object["spec"]);
    match (notice.kind.as_str(), notice.reason) {
        ("Event", Reason::Created) => object["reason"] == "Evicted" || object["type"] == "Warning",
        ("Event", _) => false,
        ("Job", Reason::Updated) => changes_spec || has_failed(object),
        ("Pod", Reason::Updated) => changes_spec || is_in_trouble(object),
        _ => true,
    }
}

fn has_failed(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Failed" && one["status"] == "True")
}

fn is_in_trouble(pod: &Value) -> bool {
    let status = &pod["status"];
    let message = status["message"].as_str().unwrap_or_default();
    if status["phase"] == "Failed" && status["reason"] == "Evicted" || message.contains("evicted") {
        return true;
    }
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists.into_iter().filter_map(|list| status[list].as_array());
    containers.flatten().any(|container| {
        let ended = |state: &str| container[state]["terminated"]["reason"] == "OOMKilled";
        container["restartCount"].as_i64().unwrap_or_default() > 0
            || container["state"]["waiting"]["reason"] == "ImagePullBackOff"
            || ended("state")
            || ended("lastState")
    })
}
