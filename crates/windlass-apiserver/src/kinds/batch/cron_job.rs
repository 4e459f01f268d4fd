//! `CronJob`.

use serde_json::Value;

use crate::kinds::{Strategy, Way};
use crate::metadata::Checks;
use crate::validation::at::Causes;
use crate::validation::cronjob;
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct CronJob;

impl Strategy for CronJob {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        cronjob::check(object, old, causes);
        if old.is_none() {
            cronjob::check_name(object, causes);
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
}
