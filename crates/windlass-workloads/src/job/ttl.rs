//! Jobs that ended go `ttlSecondsAfterFinished` later, and their pods before them.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use windlass::{
    Action, Context, Controller, Declare, Reconciler, Result,
    handle::{Access, Delete, Verb, Writes},
};

use super::condition;

/// The controller that deletes Jobs that ended.
pub(crate) fn controller() -> Controller<Job> {
    Controller::of_existing::<Job>()
        .named("ttl-after-finished")
        .reconciler(Ttl::declare)
}

struct Ttl {
    written: Writes<Job>,
}

impl Ttl {
    fn declare(declare: &mut Declare<Job>) -> Self {
        Self {
            written: declare.writes(Access::to([Verb::Delete])),
        }
    }
}

/// When the Job has to go, if it has ended and does not stay.
fn expires_at(job: &Job) -> Option<Timestamp> {
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let ended = condition::finished(job)?.last_transition_time.as_ref()?.0;
    ended
        .checked_add(SignedDuration::from_secs(i64::from(ttl)))
        .ok()
}

impl Reconciler for Ttl {
    type Object = Job;

    async fn reconcile(&self, job: &Job, ctx: &Context<Job>) -> Result<Action> {
        match expires_at(job) {
            None => Ok(Action::done()),
            Some(at) if at > ctx.clock().now() => Ok(Action::done().requeue_at(at)),
            Some(_) => {
                // Its pods go first, so that nobody sees them without their Job.
                self.written.delete(ctx, job, Delete::foreground()).await?;
                Ok(Action::done())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;
    use serde_json::{Value, json};

    fn job(ttl: Value, condition: &str) -> Job {
        serde_json::from_value(json!({
            "spec": {"template": {}, "ttlSecondsAfterFinished": ttl},
            "status": {"conditions": [
                {"type": condition, "status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn only_a_job_that_ended_and_has_a_limit_expires() {
        assert_eq!(expires_at(&job(json!(5), "Complete")), Some(at(15)));
        assert_eq!(expires_at(&job(json!(0), "Failed")), Some(at(10)));
        assert_eq!(expires_at(&job(json!(5), "FailureTarget")), None);
        assert_eq!(expires_at(&job(Value::Null, "Complete")), None);
    }
}
