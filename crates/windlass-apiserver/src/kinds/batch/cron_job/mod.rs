//! `CronJob`.

pub(crate) mod schedule;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{Strategy, Way};
use crate::table::age;
use crate::table::cell::{containers, count, none};
use crate::table::text::{selector, text};
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CronJob;

impl Strategy for CronJob {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        validation::check(object, old, causes);
        if old.is_none() {
            validation::check_name(object, causes);
        }
    }

    fn metadata_checks(&self) -> Checks {
        Checks::CRON_JOB
    }

    fn pod_template(&self) -> Option<Way> {
        Some(&["spec", "jobTemplate", "spec", "template"])
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_warnings::of_template(object, &["spec", "jobTemplate", "spec", "template"])
    }

    fn cell(&self, object: &Value, column: &str, now: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        let status = &object["status"];
        Some(match column {
            "Schedule" => text(&spec["schedule"]).into(),
            "Timezone" => none(&spec["timeZone"]),
            "Suspend" => if spec["suspend"] == true {
                "True"
            } else {
                "False"
            }
            .into(),
            "Active" => count(&status["active"]),
            "Last Schedule" => match status["lastScheduleTime"].as_str() {
                Some(at) => age(at, now).into(),
                None => "<none>".into(),
            },
            "Selector" => selector(&spec["selector"]).into(),
            "Containers" | "Images" => containers(&spec["jobTemplate"]["spec"]["template"], column),
            _ => return None,
        })
    }
}
