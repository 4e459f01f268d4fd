//! A fake API server: enough of lists, watches and writes to judge an operator by its requests.
//!
//! Its server-side apply knows no schema: lists are replaced as a whole. It never fails by itself.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use serde_json::{Map, Value, json};
use tokio::{sync::mpsc, time::Instant};
use windlass::{
    Operator,
    run::Running,
    testing::{Activity, Clock, Environment, Random},
};

type Bytes = http_body_util::Full<bytes::Bytes>;
type Answer = Response<BoxBody<bytes::Bytes, Infallible>>;

/// The server and the world around it; clones are the same server.
#[derive(Clone, Default)]
pub(crate) struct Fake(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    /// By collection path without namespace, then namespace/name.
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    watches: Vec<(String, mpsc::UnboundedSender<Value>)>,
    writes: Vec<String>,
    /// While set, watches deliver nothing.
    held: Option<Vec<(String, Value)>>,
    activity: Activity,
}

struct Target {
    collection: String,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl Fake {
    pub(crate) fn client(&self) -> kube::Client {
        let fake = self.clone();
        kube::Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let fake = fake.clone();
                async move { Ok::<_, Infallible>(fake.answer(request).await) }
            }),
            "default",
        )
    }

    /// Starts an operator and lets it settle.
    pub(crate) async fn start(&self, operator: &Operator) -> Running {
        let base: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let activity = self.lock().activity.clone();
        let environment = Environment {
            clock: Clock::starting_at(base),
            random: Random::seeded(1),
            activity,
            ..Environment::default()
        };
        let running = operator.start(self.client(), environment);
        self.settle().await;
        running
    }

    /// Lets everything run until nothing is left to do, at most for some virtual minutes.
    pub(crate) async fn settle(&self) {
        let activity = self.lock().activity.clone();
        let limit = Instant::now() + Duration::from_mins(10);
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if activity.is_idle() {
                return;
            }
            assert!(
                Instant::now() < limit,
                "does not settle: {:?}",
                activity.describe()
            );
            if !activity.is_busy()
                && let Some(at) = activity.next_due()
            {
                tokio::time::sleep_until(at).await;
            }
        }
    }

    /// The writes since the last call, as `VERB path`.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().writes)
    }

    /// An object, by its path.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let target = Target::of(path);
        let state = self.lock();
        state
            .objects
            .get(&target.collection)?
            .get(&target.key())
            .cloned()
    }

    /// Creates or changes an object as a person would, by merge.
    pub(crate) fn put(&self, path: &str, change: &Value) {
        let target = Target::of(path);
        let mut state = self.lock();
        let current = state
            .objects
            .get(&target.collection)
            .and_then(|all| all.get(&target.key()));
        let merged = merge(current.unwrap_or(&json!({})), change);
        state.store(&target, merged);
    }

    /// Deletes an object as a person would: at once, or once its finalizers are gone.
    pub(crate) fn delete(&self, path: &str) {
        self.lock().delete(&Target::of(path));
    }

    /// Holds back what watches would deliver.
    pub(crate) fn hold_watches(&self) {
        self.lock().held = Some(Vec::new());
    }

    pub(crate) fn release_watches(&self) {
        let mut state = self.lock();
        for (collection, event) in state.held.take().unwrap_or_default() {
            state.send(&collection, event);
        }
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let target = Target::of(parts.uri.path());
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let query = parts.uri.query().unwrap_or_default();
        if parts.method == Method::GET && query.contains("watch=true") {
            if query.contains("sendInitialEvents=true") {
                // As a server without the feature does: lists come in pages.
                let refusal = json!({"kind": "Status", "code": 422, "reason": "Invalid"});
                let body = Bytes::from(refusal.to_string()).boxed();
                return Response::builder().status(422).body(body).unwrap();
            }
            return self.watch(&target);
        }
        if parts.method != Method::GET {
            self.lock()
                .writes
                .push(format!("{} {}", parts.method, parts.uri.path()));
        }
        let content = parts
            .headers
            .get("content-type")
            .and_then(|kind| kind.to_str().ok());
        let mut state = self.lock();
        let (code, value) = match parts.method {
            Method::GET => (200, state.list(&target)),
            Method::POST => (201, state.create(&target, &body)),
            Method::DELETE => (
                200,
                state.delete(&target).unwrap_or_else(|| not_found(&target)),
            ),
            Method::PATCH if content == Some("application/apply-patch+yaml") => {
                (200, state.apply(&target, &body, query))
            }
            Method::PATCH => match state.find(&target) {
                Some(current) => (200, state.patch(&target, &current, &body)),
                None => (404, not_found(&target)),
            },
            _ => (405, json!({})),
        };
        let code = value["code"]
            .as_u64()
            .map_or(code, |code| u16::try_from(code).unwrap());
        let body = Bytes::from(value.to_string()).boxed();
        Response::builder().status(code).body(body).unwrap()
    }

    fn watch(&self, target: &Target) -> Answer {
        let (sender, receiver) = mpsc::unbounded_channel::<Value>();
        self.lock()
            .watches
            .push((target.collection.clone(), sender));
        let lines = stream::unfold(receiver, |mut receiver| async move {
            let event = receiver.recv().await?;
            Some((format!("{event}\n"), receiver))
        });
        let frames = lines.map(|line| Ok::<_, Infallible>(http_body::Frame::data(line.into())));
        Response::new(BodyExt::boxed(StreamBody::new(frames.map(|frame| frame))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn find(&self, target: &Target) -> Option<Value> {
        self.objects
            .get(&target.collection)?
            .get(&target.key())
            .cloned()
    }

    fn list(&self, target: &Target) -> Value {
        let items: Vec<&Value> = self
            .objects
            .get(&target.collection)
            .into_iter()
            .flatten()
            .map(|(_, one)| one)
            .collect();
        json!({"kind": "List", "metadata": {"resourceVersion": self.version.to_string()}, "items": items})
    }

    fn create(&mut self, target: &Target, body: &Value) -> Value {
        let name = body["metadata"]["name"].as_str().unwrap().to_owned();
        self.store(
            &Target {
                name: Some(name),
                ..target.clone()
            },
            body.clone(),
        )
    }

    fn apply(&mut self, target: &Target, intent: &Value, query: &str) -> Value {
        let manager = query
            .split('&')
            .find_map(|one| one.strip_prefix("fieldManager="));
        let found = self.find(target);
        let mut intent = intent.clone();
        let version = intent["metadata"]
            .as_object_mut()
            .and_then(|metadata| metadata.remove("resourceVersion"));
        // One that no object has is that of an object that is not there.
        let is_other = |found: &Value| {
            let wanted = version.as_ref();
            wanted.is_some_and(|version| *version != found["metadata"]["resourceVersion"])
        };
        if found.as_ref().is_some_and(is_other) {
            return json!({"kind": "Status", "code": 409, "reason": "Conflict"});
        }
        let mut object = found.unwrap_or(json!({}));
        let fields = fields_of(&intent, true);
        if let Some(before) = object["metadata"]["managedFields"][0]["fieldsV1"]
            .as_object()
            .cloned()
        {
            remove_dropped(&mut object, &before, &fields);
        }
        intent["metadata"]["managedFields"] =
            json!([{"manager": manager, "operation": "Apply", "fieldsV1": fields}]);
        let merged = merge(&object, &intent);
        self.store(target, merged)
    }

    /// By a merge patch, or by a JSON patch that replaces values.
    fn patch(&mut self, target: &Target, current: &Value, patch: &Value) -> Value {
        if let Some(operations) = patch.as_array() {
            let mut merged = current.clone();
            for operation in operations {
                assert_eq!(operation["op"], "replace");
                let pointer = operation["path"].as_str().unwrap();
                let replaced = merged.pointer_mut(pointer);
                *replaced.expect("a value to be replaced") = operation["value"].clone();
            }
            let (current, merged_version) = (
                &current["metadata"]["resourceVersion"],
                &merged["metadata"]["resourceVersion"],
            );
            if current != merged_version {
                return json!({"kind": "Status", "code": 409, "reason": "Conflict"});
            }
            return self.store(target, merged);
        }
        let version = &patch["metadata"]["resourceVersion"];
        if !version.is_null() && *version != current["metadata"]["resourceVersion"] {
            return json!({"kind": "Status", "code": 409, "reason": "Conflict"});
        }
        let merged = merge(current, patch);
        let finalizers = merged["metadata"]["finalizers"]
            .as_array()
            .map_or(0, Vec::len);
        if !merged["metadata"]["deletionTimestamp"].is_null() && finalizers == 0 {
            self.forget(target);
            return merged;
        }
        self.store(target, merged)
    }

    fn delete(&mut self, target: &Target) -> Option<Value> {
        let mut object = self.find(target)?;
        if object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
        {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            return Some(self.store(target, object));
        }
        self.forget(target);
        Some(object)
    }

    fn forget(&mut self, target: &Target) {
        let Some(mut object) = self
            .objects
            .get_mut(&target.collection)
            .and_then(|all| all.remove(&target.key()))
        else {
            return;
        };
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.send(
            &target.collection,
            json!({"type": "DELETED", "object": object}),
        );
    }

    /// Stores an object; one that did not change keeps its version and makes no event.
    fn store(&mut self, target: &Target, mut object: Value) -> Value {
        let before = self.find(target);
        if before.as_ref() == Some(&object) {
            return object;
        }
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["name"] = target.name.clone().into();
        metadata["namespace"] = target.namespace.clone().into();
        metadata["resourceVersion"] = self.version.to_string().into();
        if metadata["uid"].is_null() {
            metadata["uid"] = format!("uid-{}", self.version).into();
        }
        if metadata["generation"].is_null()
            || before
                .as_ref()
                .is_some_and(|old| old["spec"] != object["spec"])
        {
            let generation = object["metadata"]["generation"].as_u64().unwrap_or(0);
            object["metadata"]["generation"] = (generation + 1).into();
        }
        let kind = if before.is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        let all = self.objects.entry(target.collection.clone()).or_default();
        all.insert(target.key(), object.clone());
        self.send(&target.collection, json!({"type": kind, "object": object}));
        object
    }

    fn send(&mut self, collection: &str, event: Value) {
        if let Some(held) = &mut self.held {
            held.push((collection.to_owned(), event));
            return;
        }
        self.watches
            .retain(|(of, watch)| of != collection || watch.send(event.clone()).is_ok());
    }
}

impl Clone for Target {
    fn clone(&self) -> Self {
        Self {
            collection: self.collection.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource: self.subresource.clone(),
        }
    }
}

impl Target {
    fn of(path: &str) -> Self {
        let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = steps.split_at(if steps[0] == "api" { 2 } else { 3 });
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let at = |index: usize| rest.get(index).map(ToString::to_string);
        Self {
            collection: format!("{}/{}", group.join("/"), rest[0]),
            namespace: namespace.map(ToOwned::to_owned),
            name: at(1),
            subresource: at(2),
        }
    }

    fn key(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        format!("{}/{name}", self.namespace.as_deref().unwrap_or_default())
    }
}

fn not_found(target: &Target) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
           "message": format!("{} not found", target.key())})
}

fn merge(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut result = target.as_object().cloned().unwrap_or_default();
    for (name, patch) in patch {
        if patch.is_null() {
            result.remove(name);
        } else {
            let merged = merge(result.get(name).unwrap_or(&Value::Null), patch);
            result.insert(name.clone(), merged);
        }
    }
    Value::Object(result)
}

/// The managed fields of an intent; every list is a leaf.
fn fields_of(intent: &Value, top: bool) -> Value {
    let Some(map) = intent.as_object() else {
        return json!({});
    };
    let identity = ["apiVersion", "kind", "name", "namespace", "uid"];
    let fields = map
        .iter()
        .filter(|(name, _)| !(top && identity[..2].contains(&name.as_str())));
    let mut fields: Map<String, Value> = fields
        .map(|(name, value)| (format!("f:{name}"), fields_of(value, false)))
        .collect();
    if let Some(metadata) = fields
        .get_mut("f:metadata")
        .and_then(Value::as_object_mut)
        .filter(|_| top)
    {
        metadata.retain(|name, _| !identity.contains(&name.trim_start_matches("f:")));
    }
    Value::Object(fields)
}

fn remove_dropped(object: &mut Value, before: &Map<String, Value>, now: &Value) {
    for (step, below) in before {
        let name = step.trim_start_matches("f:");
        match (now.get(step), below.as_object(), object.as_object_mut()) {
            (None, _, Some(object)) => {
                object.remove(name);
            }
            (Some(now), Some(below), Some(object)) => {
                if let Some(object) = object.get_mut(name) {
                    remove_dropped(object, below, now);
                }
            }
            _ => {}
        }
    }
}
