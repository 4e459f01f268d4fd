//! Eviction: the deletion of a pod that its disruption budget has a say in.
//!
//! A pod that does not run, or is going anyway, is deleted like any other. For one that runs, a
//! disruption is taken from the one budget that selects it, before the pod is deleted: the budget
//! notes the pod as disrupted, so that its controller does not count the same pod twice. A pod
//! that is not ready is let go when the budget is met without it.

use serde_json::{Value, json};

use super::admit::{self, Admitted};
use super::binding::success;
use super::delete::{self, Options, preconditions};
use super::pipeline::place;
use super::{Call, body, options, ownership, refusal};
use crate::apply::{self, Managers, Writer};
use crate::http::Answer;
use crate::object::{is_terminating, meta, set_meta};
use crate::registry::types::Type;
use crate::status::{ApiError, Result};
use crate::store::{Stored, TableName, WriteError};
use crate::validation::selects;
use std::sync::Arc;

const EVICTION: &str = "io.k8s.api.policy.v1.Eviction";
/// How often a write that lost a race is tried again.
const RACE_RETRIES: usize = 64;
/// How many evictions a budget remembers that its controller has not confirmed.
const MOST_DISRUPTED: usize = 2000;
const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What a budget says to an eviction.
enum Verdict {
    /// A disruption is taken.
    Take,
    /// The pod does not count.
    LetGo,
}

pub(super) async fn run(call: &Call<'_>) -> Result<Answer> {
    let mut eviction = body::decode_posted(call, "Eviction", "policy")?;
    let create = options::shown(&call.query, "CreateOptions");
    let admitted = Admitted {
        subresource: "eviction",
        ..Admitted::create(call, call.name(), &create)
    };
    place::put(call, &mut eviction)?;
    ownership::record_body(call, &mut eviction, EVICTION, "policy/v1", "eviction");
    admit::mutate(call, &admitted, Some(&mut eviction)).await?;
    if meta(&eviction, "name") != call.name() {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let (options, asked_dry) = Options::from_body(&eviction["deleteOptions"])?;
    let dry_run = call.dry_run || asked_dry;
    admit::judge(call, &admitted, Some(&eviction)).await?;
    let found = call.find()?;
    let pod = found.value();
    if !counts(&pod) {
        delete_evicted(call, options, dry_run).await?;
        return Ok(success());
    }
    let budgets = budgets_of(call, &pod);
    match budgets.as_slice() {
        [] => delete_evicted(call, options, dry_run).await?,
        [budget] => {
            preconditions::check(call, &found, &options)?;
            match verdict(&budget.value(), &pod) {
                Verdict::LetGo => {}
                Verdict::Take => take_disruption(call, budget, &pod, dry_run)?,
            }
            delete_evicted(call, options, dry_run).await?;
        }
        _ => {
            return Err(ApiError::without_reason(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    }
    Ok(success())
}

fn budgets_of(call: &Call<'_>, pod: &Value) -> Vec<Arc<Stored>> {
    let listing = call
        .server
        .store()
        .list(&budget_table(), Some(call.namespace()), None, None);
    let budgets = listing.map(|listing| listing.objects).unwrap_or_default();
    let labels = &pod["metadata"]["labels"];
    budgets
        .into_iter()
        .filter(|budget| selects(&budget.value()["spec"]["selector"], labels))
        .collect()
}

/// Takes a disruption from a budget, and notes for whom.
fn take_disruption(
    call: &Call<'_>,
    budget: &Arc<Stored>,
    pod: &Value,
    dry_run: bool,
) -> Result<()> {
    let store = call.server.store();
    let mut found = budget.clone();
    for _ in 0..RACE_RETRIES {
        let old = found.value();
        check_allows(&old)?;
        if dry_run {
            return Ok(());
        }
        let new = disrupted(call, &old, meta(pod, "name"));
        let key = found.key.clone();
        match store.update(&budget_table(), key.clone(), found.revision, new, &[]) {
            Err(WriteError::Changed) => match store.get(&budget_table(), &key) {
                Some(now) => found = now,
                // Somebody removed it: nothing forbids the eviction any more.
                None => return Ok(()),
            },
            Ok(_) | Err(WriteError::Missing) => return Ok(()),
            Err(error) => return Err(refusal::of_write(call, key.name(), error)),
        }
    }
    Err(still_processed(meta(&found.value(), "name")))
}

/// The budget after one more disruption.
fn disrupted(call: &Call<'_>, old: &Value, pod: &str) -> Value {
    let now = call.server.clock().now_seconds();
    let mut new = old.clone();
    let left = old["status"]["disruptionsAllowed"]
        .as_i64()
        .unwrap_or_default()
        - 1;
    new["status"]["disruptionsAllowed"] = left.into();
    if left == 0 {
        set_condition(
            &mut new,
            json!({
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": "InsufficientPods",
                "message": "",
                "observedGeneration": old["status"]["observedGeneration"],
                "lastTransitionTime": now,
            }),
        );
    }
    if !new["status"]["disruptedPods"].is_object() {
        new["status"]["disruptedPods"] = json!({});
    }
    new["status"]["disruptedPods"][pod] = now.as_str().into();
    let writer = Writer {
        manager: "kube-apiserver",
        api_version: "policy/v1",
        subresource: "status",
        now: Some(&now),
    };
    let ty = Type::Named("io.k8s.api.policy.v1.PodDisruptionBudget".into());
    let managers = Managers::read(&old["metadata"]["managedFields"]);
    let managers = apply::record_update(old, &new, &ty, managers, &writer, &[&["spec"]]);
    set_meta(&mut new, "managedFields", Some(managers.write()));
    new
}

/// Says on the pod that it is evicted, and deletes it.
async fn delete_evicted(call: &Call<'_>, mut options: Options, dry_run: bool) -> Result<()> {
    let key = call.key();
    for _ in 0..RACE_RETRIES {
        let found = call.find()?;
        preconditions::check(call, &found, &options)?;
        if dry_run {
            break;
        }
        let mut pod = found.value();
        let before = pod.clone();
        let now = call.server.clock().now_seconds();
        set_condition(
            &mut pod,
            json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
                "lastProbeTime": null,
                "lastTransitionTime": now,
            }),
        );
        if apply::equal_but_for_times(&pod, &before) || is_terminating(&before) {
            break;
        }
        let written = call.server.store().update(
            &call.resource.table,
            key.clone(),
            found.revision,
            pod,
            &call.resource.selectable,
        );
        match written {
            Ok(stored) => {
                if options.revision.is_some() {
                    options.revision = Some(stored.revision.to_string());
                }
                break;
            }
            Err(WriteError::Changed) => {}
            Err(error) => return Err(refusal::of_write(call, call.name(), error)),
        }
    }
    // Webhooks were asked about the eviction, not about the deletion.
    let deletion = delete::one(call, &key, None, &options, dry_run);
    deletion.await.map(drop)
}

fn budget_table() -> TableName {
    TableName::new("policy", "poddisruptionbudgets")
}

/// Whether a budget has a say: the pod runs, and is to stay.
fn counts(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    !is_terminating(pod) && !matches!(phase, "Succeeded" | "Failed" | "Pending")
}

fn verdict(budget: &Value, pod: &Value) -> Verdict {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True");
    if !ready {
        let number = |part: &str| budget["status"][part].as_i64().unwrap_or_default();
        let met =
            number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy");
        if met || budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" {
            return Verdict::LetGo;
        }
    }
    Verdict::Take
}

fn too_many(cause: &str, retry_after: Option<u64>) -> ApiError {
    let mut error = ApiError::new(
        http::StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequests",
        VIOLATION,
    );
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if let Some(seconds) = retry_after {
        details["retryAfterSeconds"] = seconds.into();
    }
    error.details = Some(details);
    error
}

fn still_processed(budget: &str) -> ApiError {
    let cause = format!("The disruption budget {budget} is still being processed by the server.");
    too_many(&cause, Some(10))
}

/// Whether a budget has a disruption left.
fn check_allows(budget: &Value) -> Result<()> {
    let name = meta(budget, "name");
    let status = &budget["status"];
    let number = |part: &str| status[part].as_i64().unwrap_or_default();
    let generation = budget["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default();
    if number("observedGeneration") < generation {
        return Err(still_processed(name));
    }
    let subject = crate::status::Subject {
        group: "policy",
        kind: "poddisruptionbudget",
    };
    if number("disruptionsAllowed") < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(ApiError::forbidden(subject, name, why));
    }
    if status["disruptedPods"]
        .as_object()
        .is_some_and(|pods| pods.len() > MOST_DISRUPTED)
    {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(subject, name, why));
    }
    if number("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let (desired, current) = (number("desiredHealthy"), number("currentHealthy"));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let refusing = conditions
        .into_iter()
        .find(|one| one["type"] == "DisruptionAllowed" && one["status"] == "False")
        .map(|one| {
            let text = |part: &str| one[part].as_str().unwrap_or_default();
            (text("reason"), text("message"))
        })
        .filter(|(_, message)| !message.is_empty());
    let cause = match refusing {
        Some(("SyncFailed", message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if current <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        ),
        None => {
            format!("The disruption budget {name} does not allow evicting pods currently")
        }
    };
    Err(too_many(&cause, None))
}

/// Sets a condition of an object, in place of one of the same type.
pub(super) fn set_condition(object: &mut Value, condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(list) => match list.iter_mut().find(|one| one["type"] == condition["type"]) {
            Some(known) => *known = condition,
            None => list.push(condition),
        },
        None => *conditions = json!([condition]),
    }
}
