//! `Job`, which knows its pods by its uid.

pub(crate) mod indexes;
pub(crate) mod status;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Strategy, Way, Writing};
use crate::object::is_terminating;
use crate::object::{meta, meta_mut};
use crate::table::cell::{containers, has_condition, number};
use crate::table::duration;
use crate::table::text::selector;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Job;

impl Strategy for Job {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_update(new, old, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        status::check(new, old, causes);
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn pod_template(&self) -> Option<Way> {
        Some(&["spec", "template"])
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn orphan_warning(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        )
    }

    fn unknown_field_label(&self, field: &str) -> String {
        format!("field label \"{field}\" not supported for Job")
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_warnings::of_job(object)
    }

    fn prepare_create(&self, object: &mut Value, _: &Writing<'_>) -> Vec<String> {
        select_own_pods(object);
        Vec::new()
    }

    fn cell(&self, object: &Value, column: &str, now: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Status" => job_status(object).into(),
            "Completions" => completions(object).into(),
            "Duration" => run_time(&object["status"], now).into(),
            "Selector" => selector(&spec["selector"]).into(),
            "Containers" | "Images" => containers(&spec["template"], column),
            _ => return None,
        })
    }
}

/// A Job knows its pods by its uid, unless it says how else.
fn select_own_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let (name, uid) = (meta(job, "name").to_owned(), meta(job, "uid").to_owned());
    let template = &mut job["spec"]["template"];
    if !template.is_object() {
        return;
    }
    let labels = meta_mut(template)
        .entry("labels")
        .or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        for (key, value) in [
            ("controller-uid", &uid),
            ("job-name", &name),
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
        ] {
            labels.entry(key).or_insert_with(|| value.as_str().into());
        }
    }
    let selector = &mut job["spec"]["selector"];
    if selector.is_null() {
        *selector = json!({});
    }
    if selector.is_object() {
        let labels = &mut selector["matchLabels"];
        if !labels.is_object() {
            *labels = json!({});
        }
        let own = &mut labels["batch.kubernetes.io/controller-uid"];
        if own.is_null() {
            *own = uid.into();
        }
    }
}

fn job_status(job: &Value) -> String {
    let states = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("", "Terminating"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    let holds = |condition: &str| match condition {
        "" => is_terminating(job),
        condition => has_condition(job, condition),
    };
    let found = states.iter().find(|(condition, _)| holds(condition));
    found.map_or("Running", |(_, shown)| *shown).to_owned()
}

fn completions(job: &Value) -> String {
    let done = number(&job["status"]["succeeded"]);
    let parallel = job["spec"]["parallelism"].as_i64().unwrap_or_default();
    match job["spec"]["completions"].as_i64() {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallel > 1 => format!("{done}/1 of {parallel}"),
        None => format!("{done}/1"),
    }
}

fn run_time(status: &Value, now: Timestamp) -> String {
    let at = |field: &str| status[field].as_str()?.parse::<Timestamp>().ok();
    match (at("startTime"), at("completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => {
            let end = end.unwrap_or(now);
            duration(end.as_second() - start.as_second())
        }
    }
}
