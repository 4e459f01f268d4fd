//! Announced disruptions that did not come: a pod that was to be deleted and is still there after
//! two minutes is a pod like any other again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use windlass::{
    Action, Context, Controller, Declare, Reconciler, Result,
    handle::{Access, Verb, Writes},
};

use crate::{pod, scheduler};

const CONDITION: &str = "DisruptionTarget";
const PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// The controller that takes announcements back.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::of_existing::<Pod>()
        .named("stale-disruptions")
        .reconciler(Announcements::declare)
}

struct Announcements {
    written: Writes<Pod>,
}

impl Announcements {
    fn declare(declare: &mut Declare<Pod>) -> Self {
        Self {
            written: declare.writes(Access::none().on("status", [Verb::Patch])),
        }
    }
}

/// When the announcement is to be taken back, if there is one.
fn stale_at(one: &Pod) -> Option<Timestamp> {
    let told = pod::condition(one, CONDITION).filter(|told| told.status == "True")?;
    let is_its_end = pod::has_ended(one) || told.reason.as_deref() == Some("TerminationByKubelet");
    if pod::is_terminating(one) || is_its_end {
        return None;
    }
    let since = told
        .last_transition_time
        .as_ref()
        .map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    since.checked_add(PATIENCE).ok()
}

impl Reconciler for Announcements {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        let Some(at) = stale_at(pod) else {
            return Ok(Action::done());
        };
        if at > ctx.clock().now() {
            return Ok(Action::done().requeue_at(at));
        }
        let mut status = pod.status.clone().unwrap_or_default();
        let taken_back = PodCondition {
            type_: CONDITION.to_owned(),
            status: "False".to_owned(),
            last_transition_time: Some(ctx.clock().time()),
            ..PodCondition::default()
        };
        scheduler::replace(&mut status, taken_back);
        self.written.status(ctx, pod, status).await?;
        Ok(Action::done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::{at, in_phase};
    use serde_json::json;

    fn announced(status: &str, reason: &str) -> Pod {
        let mut pod = crate::pod::testing::pod("p");
        pod.status.as_mut().unwrap().conditions = serde_json::from_value(json!([{
            "type": CONDITION, "status": status, "reason": reason,
            "lastTransitionTime": at(10).to_string(),
        }]))
        .unwrap();
        pod
    }

    #[test]
    fn only_a_disruption_that_is_still_to_come_is_taken_back() {
        assert_eq!(
            stale_at(&announced("True", "EvictionByEvictionAPI")),
            Some(at(130))
        );
        assert_eq!(stale_at(&announced("False", "")), None);
        assert_eq!(stale_at(&announced("True", "TerminationByKubelet")), None);
        assert_eq!(stale_at(&in_phase(announced("True", "x"), "Failed")), None);
    }
}
