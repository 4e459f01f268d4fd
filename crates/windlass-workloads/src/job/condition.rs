//! The conditions of a Job.
//!
//! **SuccessCriteriaMet** and **FailureTarget** say how a Job will end, while its pods are still
//! on their way out; **Complete** and **Failed** say that it has. **Suspended** says that it rests.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(crate) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
pub(crate) const FAILURE_TARGET: &str = "FailureTarget";
pub(crate) const COMPLETE: &str = "Complete";
pub(crate) const FAILED: &str = "Failed";
pub(crate) const SUSPENDED: &str = "Suspended";

/// A condition that holds from now on.
pub(crate) fn condition(type_: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: (!reason.is_empty()).then(|| reason.to_owned()),
        message: (!message.is_empty()).then(|| message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// The condition that has this type and holds.
pub(crate) fn held<'a>(job: &'a Job, type_: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let mut conditions = conditions.iter();
    conditions.find(|condition| condition.type_ == type_ && condition.status == "True")
}

/// How and when the Job ended, if it has.
pub(crate) fn finished(job: &Job) -> Option<&JobCondition> {
    held(job, COMPLETE).or_else(|| held(job, FAILED))
}

/// Sets a condition; true if that changed anything. One that does not hold is not added.
pub(crate) fn set(conditions: &mut Vec<JobCondition>, condition: JobCondition) -> bool {
    match conditions
        .iter_mut()
        .find(|one| one.type_ == condition.type_)
    {
        Some(one) => {
            let same = (&one.status, &one.reason, &one.message)
                == (&condition.status, &condition.reason, &condition.message);
            if !same {
                *one = condition;
            }
            !same
        }
        None if condition.status == "False" => false,
        None => {
            conditions.push(condition);
            true
        }
    }
}
