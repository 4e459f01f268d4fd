//! What was applied before: nothing is sent, and little is looked at, where that still holds.

use std::{hash::Hasher as _, sync::Arc};

use serde_json::Value;

use crate::{
    Key, Result,
    cache::{CachedObject, Memo, Store, take_managed, version_of},
    client::managed,
    controller::Session,
    kind::Object,
};

/// A number for an object that the session's object shall control: the same number, the same intent.
///
/// Fields in another order give another number, which costs no more than making the intent.
pub(super) fn source_of<T: Object>(session: &Session, object: &T) -> Option<u64> {
    let mut hasher = managed::hasher();
    hasher.write(&serde_json::to_vec(object).ok()?);
    hasher.write(session.owner_reference().to_string().as_bytes());
    Some(hasher.finish())
}

/// The cached object, if it is what applying this very object led to: nothing has to be sent then,
/// nor to be compared.
pub(super) async fn applied_before<T: Object>(
    session: &Session,
    store: &Store,
    object: &T,
    source: Option<u64>,
) -> Result<Option<Arc<CachedObject>>> {
    let kind = &store.kind;
    let own = session.key().namespace().filter(|_| kind.namespaced);
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    let key = Key::from_parts(own.or(meta.namespace.as_deref()), name);
    let is_known = |memo: &Memo| memo.source.is_some() && memo.source == source;
    let Some(memo) = store.memo(&key).filter(is_known) else {
        return Ok(None);
    };
    store.shows_writes_to(&key).await?;
    let Some(cached) = store.get(&key) else {
        return Ok(None);
    };
    let owner = cached.controller.as_ref();
    let is_ours = owner.is_some_and(|owner| *owner.uid == *session.uid);
    if !is_ours || cached.version != memo.version {
        return Ok(None);
    }
    session.wants(kind, &key);
    if session.controller.conditions || session.controller.stages {
        session.owns(kind, key, &cached.value());
    }
    Ok(Some(cached))
}

/// What is applied, as numbers.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) intent: u64,
    pub(super) source: Option<u64>,
}

/// Remembers what the server made of an intent.
pub(super) fn remember(
    session: &Session,
    store: &Store,
    key: &Key,
    made: Made,
    mut live: Value,
) -> Value {
    // What is rehearsed is not so: the next reconcile asks again.
    if let (Some(fields), _) = take_managed(&mut live, &session.shared.manager)
        && !session.shared.caches.is_rehearsal()
    {
        let memo = Memo {
            intent: made.intent,
            source: made.source,
            outcome: managed::outcome(&fields, &live),
            version: version_of(&live),
        };
        store.remember(key.clone(), memo);
    }
    live
}

/// Whether the cached object already is what the intent asks for.
pub(super) fn is_idle(store: &Store, cached: &CachedObject, intent: &Value, made: Made) -> bool {
    let memo = store.memo(&cached.key);
    // This version is what an intent led to: another intent leads to another.
    if let Some(memo) = memo
        && memo.version == cached.version
    {
        return memo.intent == made.intent;
    }
    let memo = memo.filter(|memo| memo.intent == made.intent);
    let Some(fields) = cached.managed() else {
        return false;
    };
    let live = cached.value();
    let outcome = || managed::outcome(&fields, &live);
    let idle = memo.is_some_and(|memo| memo.outcome == outcome())
        || managed::unchanged(&fields, intent, &live);
    if idle {
        // The next look at the same version is short.
        let memo = Memo {
            intent: made.intent,
            source: made.source,
            outcome: outcome(),
            version: cached.version,
        };
        store.remember(cached.key.clone(), memo);
    }
    idle
}
