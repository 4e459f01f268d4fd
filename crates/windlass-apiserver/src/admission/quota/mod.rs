//! Resource quotas: how much of something a namespace may have.
//!
//! What may be had is in the quota's `status.hard`, what is used in its `status.used`; both are
//! first written by the quota controller, and a quota without them limits nothing. Here usage only
//! ever rises, with the write that raises it: what is deleted is found out by the controller, which
//! counts everything again.
//!
//! Rules:
//! - A quota is about an object when it limits something the object uses and all its scopes apply.
//!   Each such quota must have room; the first that has not, by name, says no.
//! - A change uses what it adds, or all of it where the quota was not about the object before.
//! - Where processor time or memory is limited, every container must say how much it wants.
//! - A dry run is checked and not counted. What is refused later, because it exists already, stays
//!   counted until the controller looks again, as with Kubernetes.
//! - Checking and counting is one step: of two writes for the last room one is refused.

mod amounts;
mod scope;
mod usage;

use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};

use amounts::Amounts;
use usage::Measure;
pub(crate) use usage::Measured;

use crate::apply::{self, Managers, Writer};
use crate::object::{meta, set_meta};
use crate::registry::types::Type;
use crate::status::{ApiError, Result};
use crate::store::{TableName, WriteError};
use crate::webhook::{Attributes, Operation};

static TABLE: LazyLock<TableName> = LazyLock::new(|| TableName::new("", "resourcequotas"));
/// How often a count that lost a race with the controller is made again.
const RACE_RETRIES: usize = 64;

/// What keeps two writes from being counted at once.
#[derive(Debug, Default)]
pub(crate) struct QuotaLock(Mutex<()>);

/// Refuses a write for which there is no room, and counts one for which there is.
pub(crate) fn admit(attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
    let Some(object) = object else {
        return Ok(());
    };
    let is_namespace = attributes.resource.strategy.is_namespace();
    if attributes.namespace.is_empty() || is_namespace {
        return Ok(());
    }
    let store = attributes.server.store();
    let any = store.list(&TABLE, Some(attributes.namespace), None, None);
    if any.map_or(true, |listing| listing.objects.is_empty()) {
        return Ok(());
    }
    let Some(measure) = Measure::of(attributes, object) else {
        return Ok(());
    };
    let lock = &attributes.server.quota_lock().0;
    let _one_at_a_time = lock.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..RACE_RETRIES {
        let Ok(listing) = store.list(&TABLE, Some(attributes.namespace), None, None) else {
            return Ok(());
        };
        let quotas: Vec<Value> = listing.objects.iter().map(|quota| quota.value()).collect();
        let raised = charge(&quotas, &measure, attributes, object)?;
        if attributes.dry_run {
            return Ok(());
        }
        let mut changed = false;
        for (at, used) in raised {
            let (found, quota) = (&listing.objects[at], &quotas[at]);
            let new = counted(quota, &used, &attributes.server.clock().now_seconds());
            match store.update(&TABLE, found.key.clone(), found.revision, new, &[]) {
                Ok(_) | Err(WriteError::Missing) => {}
                // The controller counted meanwhile.
                Err(WriteError::Changed) => changed = true,
                Err(WriteError::Storage(why)) => return Err(ApiError::without_reason(&*why)),
                Err(error) => {
                    let name = found.key.name();
                    let why = format!("counting for quota {name}: {error:?}");
                    return Err(ApiError::internal(why));
                }
            }
        }
        if !changed {
            return Ok(());
        }
    }
    let subject = crate::status::Subject {
        group: "",
        kind: "resourcequotas",
    };
    Err(ApiError::modified(subject, ""))
}

/// Which quotas, by their place, come to use how much.
fn charge(
    quotas: &[Value],
    measure: &Measure<'_>,
    attributes: &Attributes<'_>,
    object: &Value,
) -> Result<Vec<(usize, Amounts)>> {
    let refused = |why: &str| {
        let name = match attributes.name {
            "" => meta(object, "name"),
            name => name,
        };
        Err(ApiError::forbidden(
            attributes.resource.subject(),
            name,
            why,
        ))
    };
    let mut concerned = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        let hard = Amounts::read(&quota["status"]["hard"]);
        let limited = measure.limited(&hard);
        if limited.is_empty() || !measure.in_scopes(&quota["spec"], object) {
            continue;
        }
        let name = meta(quota, "name");
        if let Some(missing) = measure.missing(&limited, object) {
            return refused(&format!("failed quota: {name}: {missing}"));
        }
        let used = Amounts::read(&quota["status"]["used"]);
        if !limited.iter().all(|limited| used.has(limited)) {
            let limited = limited.join(",");
            return refused(&format!(
                "status unknown for quota: {name}, resources: {limited}"
            ));
        }
        concerned.push((at, quota, hard, used));
    }
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let usage = measure.usage(object);
    let negative = usage.negative();
    if !negative.is_empty() {
        let negative = negative.join(",");
        return refused(&format!(
            "quota usage is negative for resource(s): {negative}"
        ));
    }
    let mut raised = Vec::new();
    for (at, quota, hard, used) in concerned {
        let before = attributes
            .old
            .filter(|_| attributes.operation == Operation::Update)
            .filter(|old| measure.in_scopes(&quota["spec"], old));
        let added = match before {
            Some(old) => usage.beyond(&measure.usage(old)),
            None => usage.clone(),
        };
        let asked = added.without_zeros().only(&hard);
        if asked.is_empty() {
            continue;
        }
        let new = used.plus(&asked);
        if attributes.subresource != "status" {
            let exceeded = new.only(&asked).exceeding(&hard);
            if !exceeded.is_empty() {
                return refused(&format!(
                    "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                    meta(quota, "name"),
                    asked.only(&exceeded),
                    used.only(&exceeded),
                    hard.only(&exceeded)
                ));
            }
        }
        raised.push((at, new));
    }
    Ok(raised)
}

/// A quota with more used, recorded as the server's own doing.
fn counted(old: &Value, used: &Amounts, now: &str) -> Value {
    let mut new = old.clone();
    if !new["status"].is_object() {
        new["status"] = json!({});
    }
    new["status"]["used"] = used.write();
    let writer = Writer {
        manager: "kube-apiserver",
        api_version: "v1",
        subresource: "status",
        now: Some(now),
    };
    let ty = Type::Named("io.k8s.api.core.v1.ResourceQuota".into());
    let managers = Managers::read(&old["metadata"]["managedFields"]);
    let managers = apply::record_update(old, &new, &ty, managers, &writer, &[&["spec"]]);
    set_meta(&mut new, "managedFields", Some(managers.write()));
    new
}
