//! Applying an object: never one that belongs to another, never needlessly.

use std::sync::Arc;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use serde_json::{Value, json};
use tracing::{debug, info};

use super::memo::{Made, is_idle, remember};
use crate::{
    Error, Key, Result,
    cache::{CachedObject, Examples, Ours, Store, of_entry, version_of},
    client::{managed, merge},
    controller::{Change, Session, key_of},
    declare::wiring::Refusals,
    event::Event,
    kind::KindInfo,
};

/// Fields of metadata that identify an object or belong to the server; never part of an intent.
const IDENTITY: [&str; 9] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
];

/// A version that no object has. The server makes an object that is applied with it, and refuses
/// when there is one already: nobody's object is taken over because the cache did not know it.
const NEVER: &str = "9223372036854775807";
/// How often an apply is sent again because the object has changed since it was read.
const TRIES: u32 = 5;

/// The label of what belongs to an object that it cannot have as its controller: the uid of that.
pub(crate) const MARK: &str = "windlass.dev/owner-uid";

/// Whether an object of this kind and namespace can have the session's object as its controller. A
/// namespaced owner can only own within its namespace.
pub(crate) fn reaches(session: &Session, kind: &KindInfo, namespace: Option<&str>) -> bool {
    match (kind.namespaced, session.key().namespace()) {
        (true, Some(own)) => namespace.is_none_or(|given| given == own),
        (true, None) => namespace.is_some(),
        (false, own) => own.is_none(),
    }
}

/// Completes an object that belongs to the session's object without being controlled by it.
pub(crate) fn marked_body(session: &Session, kind: &KindInfo, object: Value) -> Result<Value> {
    let mut body = merge::without_nulls(object);
    let namespace = body.pointer("/metadata/namespace").and_then(Value::as_str);
    if kind.namespaced && namespace.is_none() {
        let owner = format!("{} {}", session.controller.kind, session.key());
        return Err(Error::terminal(format!(
            "cannot apply {kind} {} of {owner}: it has no namespace",
            key_of(&body)
        )));
    }
    if !kind.namespaced
        && let Some(metadata) = body["metadata"].as_object_mut()
    {
        metadata.remove("namespace");
    }
    body["metadata"]["labels"][MARK] = (*session.uid).into();
    if kind.is::<Secret>() {
        encode_strings(&mut body);
    }
    Ok(body)
}

/// Whether applying an intent would send anything, as far as the cache shows.
pub(crate) async fn differs(store: &Store, body: Value) -> Result<bool> {
    let key = key_of(&body);
    store.shows_writes_to(&key).await?;
    let Some(cached) = store.get(&key) else {
        return Ok(true);
    };
    let intent = intent_of(body);
    let made = Made {
        intent: managed::fingerprint(&intent),
        source: None,
    };
    Ok(!is_idle(store, &cached, &intent, made))
}

/// Completes an object that the session's object shall control: namespace and owner reference.
pub(crate) fn owned_body(session: &Session, kind: &KindInfo, object: Value) -> Result<Value> {
    let mut body = merge::without_nulls(object);
    let own = session.key().namespace();
    let given = body
        .get("metadata")
        .and_then(|metadata| metadata.get("namespace"));
    let given = given.and_then(Value::as_str);
    if !reaches(session, kind, given) {
        let key = key_of(&body);
        let owner = format!("{} {}", session.controller.kind, session.key());
        return Err(Error::terminal(format!(
            "{owner} cannot own {kind} {key}: not in its namespace"
        )));
    }
    let metadata = &mut body["metadata"];
    if let (true, Some(own)) = (kind.namespaced, own) {
        metadata["namespace"] = own.into();
    }
    let mut references = match metadata["ownerReferences"].take() {
        Value::Array(references) => references,
        _ => Vec::new(),
    };
    references.retain(|reference| reference["uid"] != *session.uid);
    references.push(session.owner_reference());
    metadata["ownerReferences"] = Value::Array(references);
    if kind.is::<Secret>() {
        encode_strings(&mut body);
    }
    Ok(body)
}

/// The server turns a Secret's `stringData` into `data`, and knows only that afterwards.
fn encode_strings(secret: &mut Value) {
    let strings = secret
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"));
    let Some(Value::Object(strings)) = strings else {
        return;
    };
    for (name, text) in strings {
        let bytes = ByteString(text.as_str().unwrap_or_default().into());
        secret["data"][name] = json!(bytes);
    }
}

/// Applies an intent made by [`owned_body`] and returns the object as it is then.
pub(crate) async fn apply(
    session: &Session,
    store: &Store,
    refusals: &Refusals,
    body: Value,
    source: Option<u64>,
) -> Result<Applied> {
    let kind = &store.kind;
    let key = key_of(&body);
    session.wants(kind, &key);
    store.shows_writes_to(&key).await?;
    let cached = store.get(&key);
    if let Some(cached) = &cached {
        refuse_anothers(session, kind, cached)
            .inspect_err(|_| refusals.add(key.clone(), session.key().clone()))?;
    }
    let intent = intent_of(body);
    let made = Made {
        intent: managed::fingerprint(&intent),
        source,
    };
    // What is on its way out cannot be repaired; its end wakes us to create it again.
    if let Some(cached) = &cached
        && (cached.terminating || is_idle(store, cached, &intent, made))
    {
        if session.controller.conditions || session.controller.stages {
            session.owns(kind, key, &cached.value());
        }
        return Ok(Applied::Idle(Arc::clone(cached)));
    }

    let live = send(session, store, refusals, &key, intent, cached.as_deref()).await?;
    session.wrote(kind, &live);
    match &cached {
        None => session.owned_event(Change::Created, kind, &key),
        Some(cached) if cached.version != version_of(&live) => {
            session.owned_event(Change::Updated, kind, &key);
        }
        Some(_) => {}
    }
    let live = remember(session, store, &key, made, live);
    session.owns(kind, key, &live);
    Ok(Applied::Sent(live))
}

/// Applies an object that the session's object does not own.
///
/// Where a cache shows the kind it says whether anything has to be sent.
pub(crate) async fn apply_unowned(
    session: &Session,
    kind: &KindInfo,
    mut body: Value,
) -> Result<Value> {
    if kind.is::<Secret>() {
        encode_strings(&mut body);
    }
    let key = key_of(&body);
    let intent = intent_of(body);
    let made = Made {
        intent: managed::fingerprint(&intent),
        source: None,
    };
    let store = session.shared.caches.covering(kind, &key);
    if let Some(store) = &store {
        store.shows_writes_to(&key).await?;
        if let Some(cached) = store.get(&key)
            && (cached.terminating || is_idle(store, &cached, &intent, made))
        {
            return Ok(cached.value());
        }
    }
    let request = addressed(intent, kind, &key);
    debug!(%kind, %key, "applying");
    let live = session.shared.requests.apply(kind, &key, &request).await?;
    session.wrote(kind, &live);
    Ok(match store {
        Some(store) => remember(session, &store, &key, made, live),
        None => live,
    })
}

/// An intent with what the server needs to know whom it is about.
fn addressed(intent: Value, kind: &KindInfo, key: &Key) -> Value {
    let mut request = intent;
    request["apiVersion"] = kind.api_version().into();
    request["kind"] = kind.kind.as_str().into();
    request["metadata"]["name"] = key.name().into();
    if let Some(namespace) = key.namespace() {
        request["metadata"]["namespace"] = namespace.into();
    }
    request
}

/// An object after an apply.
pub(crate) enum Applied {
    /// Nothing had to be sent: it is as the cache shows it.
    Idle(Arc<CachedObject>),
    /// As the server answered.
    Sent(Value),
}

impl Applied {
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Idle(cached) => cached.value(),
            Self::Sent(live) => live,
        }
    }
}

/// Sends the apply, for exactly the object that the cache shows, or for none.
///
/// The version is a precondition: the owner reference is part of the intent, and must not come back
/// to an object that was orphaned since it was read, or it would be deleted with its former owner.
async fn send(
    session: &Session,
    store: &Store,
    refusals: &Refusals,
    key: &Key,
    intent: Value,
    cached: Option<&CachedObject>,
) -> Result<Value> {
    let kind = &store.kind;
    let requests = &session.shared.requests;
    let refuse = |live: &CachedObject| {
        refuse_anothers(session, kind, live)
            .inspect_err(|_| refusals.add(key.clone(), session.key().clone()))
    };
    let mut tries = 0;
    // A program that shares the field manager knows nothing of that of patches.
    let is_shared = session.shared.manager != session.shared.operator;
    let patch = cached.filter(|_| !is_shared);
    let patch = patch.and_then(|cached| replacements(store, cached, &intent));
    let mut request = addressed(intent, kind, key);
    let mut sent = if let Some(operations) = patch {
        debug!(%kind, %key, "patching values");
        match requests.operate(kind, key, &operations).await {
            // It is gone, or not served: an apply of it says which.
            Err(error) if error.is_not_found() => {
                apply_to(session, kind, key, &mut request, cached, &refuse).await
            }
            answer => answer,
        }
    } else {
        debug!(%kind, %key, "applying");
        apply_to(session, kind, key, &mut request, cached, &refuse).await
    };
    loop {
        let error = match sent {
            Err(error) if tries < TRIES && error.is_conflict() => error,
            answer => return answer,
        };
        tries += 1;
        // There is another version, or one at all, which the cache does not show yet.
        let live = requests.get(kind, key).await?;
        let Some(live) = live.filter(|live| cached.is_none_or(|old| is_same(old, live))) else {
            return Err(error);
        };
        let live = CachedObject::new(live, kind, &session.shared.manager, &Examples::default());
        refuse(&live)?;
        debug!(%kind, %key, "applying");
        sent = apply_to(session, kind, key, &mut request, Some(&live), &refuse).await;
    }
}

/// A patch that does what applying the intent would: where only values differ of fields that all
/// are this operator's. An apply of such an object takes the API server half as long again.
fn replacements(store: &Store, cached: &CachedObject, intent: &Value) -> Option<Vec<Value>> {
    // Places in lists are those of this version, as the server sent it.
    if store.is_transformed() || cached.version == 0 {
        return None;
    }
    let mut operations = managed::replacements(&cached.managed()?, intent, &cached.value())?;
    if operations.is_empty() {
        return None;
    }
    operations.push(at_version(&cached.version.to_string()));
    Some(operations)
}

/// The operation that makes a patch one of this version: another is a conflict.
fn at_version(version: &str) -> Value {
    json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version})
}

/// Sends an intent, as [`addressed`] made it, for an object that is known, or for none.
async fn apply_to(
    session: &Session,
    kind: &KindInfo,
    key: &Key,
    request: &mut Value,
    known: Option<&CachedObject>,
    refuse: &(impl Fn(&CachedObject) -> Result<()> + Sync),
) -> Result<Value> {
    match known {
        // What patches own of it would stay, because an apply gives up only what applies own.
        Some(known) if known.patched && !names_all(known, request) => {
            let applied = own_by_applies(session, kind, key, known, refuse).await?;
            condition(request, &applied);
        }
        // Not another object of that name that came in between.
        Some(known) => condition(request, known),
        None => request["metadata"]["resourceVersion"] = NEVER.into(),
    }
    session.shared.requests.apply(kind, key, request).await
}

fn names_all(known: &CachedObject, intent: &Value) -> bool {
    let fields = known.managed();
    fields.is_none_or(|fields| managed::names_all(&fields, intent))
}

/// Gives to the field manager of applies what that of patches owns. No value changes.
async fn own_by_applies(
    session: &Session,
    kind: &KindInfo,
    key: &Key,
    known: &CachedObject,
    refuse: &(impl Fn(&CachedObject) -> Result<()> + Sync),
) -> Result<CachedObject> {
    let (requests, operator) = (&session.shared.requests, &session.shared.manager);
    let cached = |object: Value| CachedObject::new(object, kind, operator, &Examples::default());
    // Its place among the managers is only in the object itself.
    let Some(live) = requests.get(kind, key).await? else {
        return Err(Error::Deleted {
            object: format!("{kind} {key}"),
        });
    };
    if !is_same(known, &live) {
        return Err(Error::Deleted {
            object: format!("{kind} {key}"),
        });
    }
    let operations = owned_by_applies(&live, operator);
    let live = cached(live);
    refuse(&live)?;
    let Some(mut operations) = operations else {
        return Ok(live);
    };
    operations.push(at_version(&live.version.to_string()));
    debug!(%kind, %key, "taking over the fields of patches");
    Ok(cached(requests.operate(kind, key, &operations).await?))
}

/// The patch that gives the fields of our patches to our applies; none if patches own none.
fn owned_by_applies(live: &Value, operator: &str) -> Option<Vec<Value>> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let place = |ours: Ours| {
        let of = |entry: &Value| of_entry(entry, operator) == Some(ours);
        entries.iter().position(of)
    };
    let patched = place(Ours::Patched)?;
    let path = |nth: usize, field: &str| format!("/metadata/managedFields/{nth}{field}");
    let replace =
        |path: String, value: Value| json!({"op": "replace", "path": path, "value": value});
    let Some(applied) = place(Ours::Applied) else {
        return Some(vec![
            replace(path(patched, "/manager"), operator.into()),
            replace(path(patched, "/operation"), "Apply".into()),
        ]);
    };
    let fields = |nth: usize| entries.get(nth).map(|entry| entry["fieldsV1"].clone());
    let both = managed::union(fields(applied)?, fields(patched)?);
    Some(vec![
        replace(path(applied, "/fieldsV1"), both),
        json!({"op": "remove", "path": path(patched, "")}),
    ])
}

/// Makes a request one about this object at this version.
fn condition(request: &mut Value, object: &CachedObject) {
    let Some(metadata) = request["metadata"].as_object_mut() else {
        return;
    };
    metadata.insert("uid".to_owned(), (*object.uid).into());
    // A version that is no number cannot be kept, nor asked for.
    match object.version {
        0 => metadata.remove("resourceVersion"),
        version => metadata.insert("resourceVersion".to_owned(), version.to_string().into()),
    };
}

fn is_same(old: &CachedObject, live: &Value) -> bool {
    live["metadata"]["uid"] == *old.uid
}

fn refuse_anothers(session: &Session, kind: &KindInfo, cached: &CachedObject) -> Result<()> {
    let owner = match &cached.controller {
        Some(owner) if *owner.uid == *session.uid => return Ok(()),
        None if cached.labels.get(MARK) == Some(&*session.uid) => return Ok(()),
        Some(owner) => format!("{} {}", owner.kind, owner.name),
        None => "nobody".to_owned(),
    };
    let error = Error::NotOurs {
        object: format!("{kind} {}", cached.key),
        owner,
    };
    session.event(Event::warning("NotOurs", error.to_string()).action("Apply"));
    Err(error)
}

/// The fields an apply is about: the object without its identity and status.
fn intent_of(mut intent: Value) -> Value {
    if let Some(fields) = intent.as_object_mut() {
        for field in ["apiVersion", "kind", "status"] {
            fields.remove(field);
        }
    }
    if let Some(metadata) = intent["metadata"].as_object_mut() {
        for field in IDENTITY {
            metadata.remove(field);
        }
    }
    intent
}

/// Deletes the objects of a store that the session's object controls, that this operator applied,
/// and that this reconcile did not apply.
///
/// The cache shows what earlier reconciles wrote: the engine has waited for that.
pub(crate) async fn prune(session: &Session, store: &Store) -> Result<()> {
    let kind = &store.kind;
    for object in store.controlled_by(&session.uid) {
        let key = &object.key;
        if !object.is_applied() || object.terminating || session.is_wanted(kind, key) {
            continue;
        }
        let params = super::Delete::background().params_for(&object.uid, None);
        session.shared.requests.delete(kind, key, &params).await?;
        session
            .shared
            .caches
            .deleted(kind, key, &object.uid, object.version, &session.writer);
        info!(%kind, %key, "deleted an object that is no longer applied");
        session.owned_event(Change::Deleted, kind, key);
    }
    Ok(())
}
