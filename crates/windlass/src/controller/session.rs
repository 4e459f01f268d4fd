//! [`Session`]: one reconcile of one object, without its type.
//!
//! What handles need from a [`Context`](crate::Context): who reconciles, for which object, how to
//! send, where to note what was written.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use tracing::warn;

use super::{
    action::Action,
    history::{History, WriteLoop},
    observed::{Observed, Source},
    repetitions::Repetitions,
};
use crate::{
    Error, Key, Kind, Result,
    cache::{CachedObject, Caches, Feeds, Writer},
    client::{Requests, intent, merge},
    conditions::{self, Readiness},
    event::{Event, Recorder},
    key::Named,
    kind::KindInfo,
    operator::{Late, Signals},
    run::Metrics,
    telemetry,
    testing::Environment,
};

/// What all controllers of a running operator share.
pub(crate) struct Shared {
    pub(crate) operator: Arc<str>,
    /// The field manager of what it applies.
    pub(crate) manager: Arc<str>,
    pub(crate) signals: Signals,
    /// The controllers that are started and stopped while the operator runs.
    pub(crate) late: Late,
    pub(crate) requests: Requests,
    pub(crate) caches: Arc<Caches>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) environment: Environment,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    /// Who wrote what, for traces.
    pub(crate) writes: telemetry::Writes,
    /// What was written how often.
    pub(crate) repetitions: Repetitions,
    /// What went wrong last, for the debug endpoint.
    pub(crate) history: Arc<History>,
}

/// What became of an owned object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Created,
    Updated,
    Deleted,
}

/// Facts about a controller that its reconciles need.
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct ControllerInfo {
    pub(crate) name: Arc<str>,
    /// Under which name it reports events.
    pub(crate) reporter: Arc<str>,
    pub(crate) kind: KindInfo,
    /// The finalizer of its objects, if they have one.
    pub(crate) finalizer: String,
    /// Whether the status may be written.
    pub(crate) writes_status: bool,
    /// Whether something waits for owned objects to be ready.
    pub(crate) stages: bool,
    /// Whether the kind's status has conditions that the framework keeps.
    pub(crate) conditions: bool,
    /// Whether the kind's status has an observedGeneration that the framework keeps.
    pub(crate) observed_generation: bool,
    /// Whether events are recorded for owned objects that change.
    pub(crate) records_events: bool,
    /// Whether a status or a dependent looks at what was applied.
    pub(crate) observes: bool,
}

/// One reconcile of one object.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) controller: Arc<ControllerInfo>,
    pub(crate) writer: Writer,
    pub(crate) uid: Box<str>,
    pub(crate) cause: String,
    object: Mutex<Object>,
    observed: Mutex<Observed>,
}

/// The object as this reconcile knows it: as it was read, and then as its own writes left it.
struct Object {
    current: Current,
    /// The status the author gave last.
    given: Option<Value>,
    /// How the owned objects that were applied look.
    owned: BTreeMap<(KindInfo, Key), Readiness>,
    /// What was applied, or was tried to be: not to be pruned.
    wanted: BTreeSet<(KindInfo, Key)>,
}

/// Metadata and status of the object. They are decoded when they are first looked at: a reconcile
/// that writes no status needs nothing but the object's own type.
enum Current {
    Cached(Arc<CachedObject>),
    Value(Value),
}

impl Current {
    fn value(&mut self) -> &Value {
        if let Self::Cached(object) = self {
            *self = Self::Value(object.head());
        }
        match self {
            Self::Value(value) => value,
            // Replaced just before.
            Self::Cached(_) => &Value::Null,
        }
    }
}

impl Session {
    pub(crate) fn new(
        shared: Arc<Shared>,
        controller: Arc<ControllerInfo>,
        object: &Arc<CachedObject>,
        cause: String,
    ) -> Self {
        let writer = Writer {
            controller: Arc::clone(&controller.name),
            key: object.key.clone(),
        };
        Self {
            shared,
            controller,
            writer,
            uid: object.uid.clone(),
            cause,
            object: Mutex::new(Object {
                current: Current::Cached(Arc::clone(object)),
                given: None,
                owned: BTreeMap::new(),
                wanted: BTreeSet::new(),
            }),
            observed: Mutex::new(Observed::new(object.key.namespace())),
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.writer.key
    }

    /// The key that a name means to this reconcile, for a kind.
    pub(crate) fn resolve(&self, kind: &KindInfo, name: &impl Named) -> Key {
        name.key_for(kind, self.key().namespace())
    }

    /// A controller reference to the reconciled object.
    pub(crate) fn owner_reference(&self) -> Value {
        json!({
            "apiVersion": self.controller.kind.api_version(),
            "kind": self.controller.kind.kind,
            "name": self.key().name(),
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Notes an answer to a write, so that reads wait for it.
    pub(crate) fn wrote(&self, kind: &KindInfo, answer: &Value) -> Key {
        let key = key_of(answer);
        // What is not stored is never shown, and the same every time.
        if self.shared.caches.is_rehearsal() {
            return key;
        }
        self.shared.caches.wrote(kind, &key, answer, &self.writer);
        self.shared.writes.wrote(kind, &key, answer);
        let repetitions = &self.shared.repetitions;
        if let Some(times) = repetitions.note(&self.writer, kind, &key, answer) {
            self.report_loop(kind, &key, times);
        }
        key
    }

    fn report_loop(&self, kind: &KindInfo, key: &Key, times: u32) {
        let controller = &self.controller.name;
        let message = format!(
            "{controller} has written {kind} {key} {times} times in a row with the same result; \
             somebody changes it back, or asks for what the server does not keep"
        );
        warn!(cause = self.cause, "{message}");
        self.shared.metrics.loops(controller, &kind.to_string());
        self.shared.history.looped(WriteLoop {
            at: self.shared.environment.clock.now(),
            controller: controller.to_string(),
            object: self.key().to_string(),
            writes: format!("{kind} {key}"),
            times,
        });
        self.event(Event::warning("WriteLoop", message).action("Write"));
    }

    /// What the reconcile has seen so far.
    pub(crate) fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an owned object as it is in the cluster, where a status or a dependent may look at it.
    pub(crate) fn observe<T: Kind>(&self, object: &Arc<T>) {
        if self.controller.observes {
            self.observed().add(Source::Owned, Arc::clone(object));
        }
    }

    /// Notes that an object should exist: it is not to be pruned, even if applying it fails.
    pub(crate) fn wants(&self, kind: &KindInfo, key: &Key) {
        self.lock().wanted.insert((kind.clone(), key.clone()));
    }

    pub(crate) fn is_wanted(&self, kind: &KindInfo, key: &Key) -> bool {
        self.lock().wanted.contains(&(kind.clone(), key.clone()))
    }

    /// Fails if the API server says that the object is gone, another one, or being deleted, whatever
    /// the cache shows. The answer holds for what was read before it was asked, so it is asked each
    /// time.
    pub(crate) async fn check_stays(&self) -> Result<()> {
        let (kind, key) = (&self.controller.kind, self.key());
        let live = self.shared.requests.get(kind, key).await?;
        let stays = live.is_some_and(|live| {
            let metadata = &live["metadata"];
            metadata["uid"] == *self.uid && metadata["deletionTimestamp"].is_null()
        });
        if stays {
            return Ok(());
        }
        Err(Error::Deleted {
            object: format!("{kind} {key}"),
        })
    }

    /// Records an event about an owned object, if the controller does so.
    pub(crate) fn owned_event(&self, verb: Change, kind: &KindInfo, key: &Key) {
        if self.controller.records_events {
            let (reason, action, done) = match verb {
                Change::Created => ("Created", "Create", "created"),
                Change::Updated => ("Updated", "Update", "updated"),
                Change::Deleted => ("Deleted", "Delete", "deleted"),
            };
            self.event(Event::normal(reason, format!("{done} {kind} {key}")).action(action));
        }
    }

    /// Notes how an owned object looks, if conditions are derived from it.
    pub(crate) fn owns(&self, kind: &KindInfo, key: Key, object: &Value) {
        if !self.controller.conditions && !self.controller.stages {
            return;
        }
        let readiness = conditions::readiness(kind, object);
        self.lock().owned.insert((kind.clone(), key), readiness);
    }

    /// Why an object that this reconcile applied is not ready; none if all are.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let object = self.lock();
        let why = object.owned.values().find_map(Readiness::why_not);
        why.map(ToOwned::to_owned)
    }

    pub(crate) fn event(&self, event: Event) {
        let regarding = json!({
            "apiVersion": self.controller.kind.api_version(),
            "kind": self.controller.kind.kind,
            "namespace": self.key().namespace(),
            "name": self.key().name(),
            "uid": self.uid,
        });
        let reporter = Arc::clone(&self.controller.reporter);
        self.shared.recorder.record(event, regarding, reporter);
    }

    /// Writes the status the author gives, with conditions as if the reconcile goes well.
    pub(crate) async fn write_status_now(&self, given: Value) -> Result<()> {
        self.check_status()?;
        self.lock().given = Some(given);
        // What was degraded is so until a reconcile has ended well. Otherwise one that fails after
        // this would change its status to and fro, and be woken by that for ever.
        let degraded = self.current(|object| conditions::is_degraded(&object["status"]));
        let settled = Action::done();
        self.write_status((!degraded).then_some(Ok(&settled))).await
    }

    /// Fails when the controller did not declare that it writes the status.
    pub(crate) fn check_status(&self) -> Result<()> {
        if self.controller.writes_status {
            return Ok(());
        }
        Err(Error::NotDeclared {
            controller: self.controller.name.to_string(),
            verb: "patch",
            resource: format!("{}/status", self.controller.kind),
        })
    }

    /// Sets the status that is written at the end of the reconcile.
    pub(crate) fn set_status(&self, given: Value) -> Result<()> {
        self.check_status()?;
        self.lock().given = Some(given);
        Ok(())
    }

    /// Brings the derived conditions up to date at the end of a reconcile, and writes the status
    /// that was left for it.
    pub(crate) async fn conclude(&self, result: Result<&Action, &Error>) -> Result<()> {
        let due = self.controller.conditions || self.lock().given.is_some();
        if due && self.controller.writes_status {
            self.write_status(Some(result)).await
        } else {
            Ok(())
        }
    }

    /// Writes the status with conditions that follow from a result, or with those there are.
    async fn write_status(&self, result: Option<Result<&Action, &Error>>) -> Result<()> {
        let Some(patch) = self.status_patch(result) else {
            return Ok(());
        };
        let (kind, key) = (&self.controller.kind, self.key());
        let body = json!({"status": patch});
        match self
            .shared
            .requests
            .merge(kind, key, Some("status"), &body)
            .await
        {
            Ok(answer) => {
                self.wrote(kind, &answer);
                self.lock().current = Current::Value(answer);
                Ok(())
            }
            // Deleted meanwhile: nobody is left to read it.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn status_patch(&self, result: Option<Result<&Action, &Error>>) -> Option<Value> {
        let mut object = self.lock();
        let Object {
            current,
            given,
            owned,
            ..
        } = &mut *object;
        let current = current.value();
        let nothing = json!({});
        let before = current
            .get("status")
            .filter(|status| status.is_object())
            .unwrap_or(&nothing);
        let mut status = merge::without_nulls(given.as_ref().unwrap_or(before).clone());
        let generation = current
            .get("metadata")
            .and_then(|metadata| metadata.get("generation"))
            .and_then(Value::as_i64);
        let told = given.as_ref().is_some_and(|given| {
            given
                .get("observedGeneration")
                .is_some_and(|it| !it.is_null())
        });
        // Without a status from the author, what is there tells of an earlier generation.
        if self.controller.observed_generation && !told {
            status["observedGeneration"] = generation.into();
        }
        if self.controller.conditions {
            let owned: Vec<Readiness> = owned.values().cloned().collect();
            let derived = match result {
                Some(result) => conditions::derive(result, &owned),
                None => conditions::as_before(before),
            };
            let given = given.as_ref().unwrap_or(&Value::Null);
            let failed = match result {
                Some(result) => result.is_err(),
                None => conditions::has_failed(before),
            };
            let derived = conditions::beside(given, derived, failed);
            let now = self.shared.environment.clock.now();
            conditions::merge(&mut status, before, derived, generation.unwrap_or(0), now);
        }
        merge::diff(before, &status)
    }

    /// Looks at the object as it was read, or as our own writes left it.
    pub(crate) fn current<R>(&self, look: impl FnOnce(&Value) -> R) -> R {
        look(self.lock().current.value())
    }

    pub(crate) fn replace_current(&self, current: Value) {
        self.lock().current = Current::Value(current);
    }

    fn lock(&self) -> MutexGuard<'_, Object> {
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an object in JSON.
pub(crate) fn key_of(object: &Value) -> Key {
    let metadata = object.get("metadata");
    let text = |field: &str| metadata?.get(field)?.as_str();
    Key::from_parts(text("namespace"), text("name").unwrap_or_default())
}

/// An object as JSON.
pub(crate) fn encode<T: Serialize>(kind: &KindInfo, object: &T) -> Result<Value> {
    intent::encode(object).map_err(|source| Error::Codec {
        verb: "encode",
        object: kind.to_string(),
        source,
    })
}

/// An object from JSON.
pub(crate) fn decode<T: DeserializeOwned>(kind: &KindInfo, object: Value) -> Result<T> {
    let key = key_of(&object);
    serde_json::from_value(object).map_err(|source| Error::Codec {
        verb: "decode",
        object: format!("{kind} {key}"),
        source,
    })
}
