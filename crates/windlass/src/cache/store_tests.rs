use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn store() -> Arc<Store> {
    Arc::new(Store::new(
        KindInfo::of::<ConfigMap>(),
        Scope::all(),
        "us".into(),
    ))
}

fn object(name: &str, version: u64) -> Value {
    json!({"metadata": {
        "name": name, "namespace": "n", "uid": format!("uid-{name}"),
        "resourceVersion": version.to_string(), "labels": {"app": name},
    }})
}

fn owned(name: &str, version: u64, owner: &str) -> Value {
    let mut object = object(name, version);
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "O", "name": "o", "uid": owner, "controller": true}]);
    object
}

fn key(name: &str) -> Key {
    Key::namespaced("n", name)
}

fn writer() -> Writer {
    Writer {
        controller: "c".into(),
        key: key("w"),
    }
}

/// Everything the store has delivered, as `old version -> new version` per name.
fn log(store: &Store) -> Arc<Mutex<Vec<String>>> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&log);
    store.subscribe(move |change| {
        let version = |object: Option<&CachedObject>| object.map(|object| object.version);
        let name = change.key().unwrap().name().to_owned();
        let line = format!(
            "{name} {:?} -> {:?}",
            version(change.old),
            version(change.new)
        );
        sink.lock().unwrap().push(line);
    });
    log
}

fn list(store: &Store, objects: impl IntoIterator<Item = Value>) {
    store.list_begins();
    for object in objects {
        store.put(object);
    }
    store.list_ends();
}

#[test]
fn deletes_during_an_interruption_are_delivered() {
    let store = store();
    list(&store, [object("a", 1), object("b", 2)]);
    let log = log(&store);
    list(&store, [object("b", 2), object("c", 5)]);
    assert_eq!(
        *log.lock().unwrap(),
        ["c None -> Some(5)", "a Some(1) -> None"]
    );
}

#[test]
fn a_list_that_failed_half_way_deletes_nothing() {
    let store = store();
    list(&store, [object("a", 1), object("b", 2)]);
    let log = log(&store);
    store.list_begins();
    store.put(object("b", 2));
    list(&store, [object("a", 1), object("b", 2)]);
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn the_owner_index_follows_changes_of_ownership() {
    let store = store();
    list(&store, [owned("a", 1, "x"), owned("b", 2, "x")]);
    let names = |uid: &str| -> Vec<String> {
        store
            .controlled_by(uid)
            .iter()
            .map(|object| object.key.name().to_owned())
            .collect()
    };
    assert_eq!(names("x"), ["a", "b"]);
    store.put(owned("a", 3, "y"));
    store.put(object("b", 4));
    assert_eq!((names("x"), names("y")), (vec![], vec!["a".to_owned()]));
    store.remove(owned("a", 5, "y"));
    assert!(names("y").is_empty());
}

#[test]
fn selection_stays_within_the_namespace() {
    let store = store();
    let mut other = object("a", 9);
    other["metadata"]["namespace"] = json!("m");
    list(&store, [object("a", 1), object("b", 2), other]);
    let selector = [Expression::Equal("app".into(), "a".into())];
    assert_eq!(store.select(Some("n"), &selector).len(), 1);
    assert_eq!(store.select(None, &selector).len(), 2);
    assert_eq!(store.select(Some("n"), &[]).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_our_own_write() {
    let store = store();
    list(&store, [object("a", 1)]);
    store.expect(&key("a"), &writer(), Want::Version(7));
    let reader = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store.shows_writes_to(&key("a")).await.unwrap();
            store.get(&key("a")).unwrap().version
        })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!reader.is_finished());
    store.put(object("a", 7));
    assert_eq!(reader.await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_read_does_not_wait_when_the_cache_is_current() {
    let store = store();
    list(&store, [object("a", 3)]);
    let before = tokio::time::Instant::now();
    // A write that changed nothing: its answer has the version the cache has.
    store.expect(&key("a"), &writer(), Want::Version(3));
    store.shows_writes_to(&key("a")).await.unwrap();
    // A write overtaken by a later event of the same kind.
    store.put(object("b", 9));
    store.expect(&key("c"), &writer(), Want::Version(8));
    store.shows_writes_of(&writer()).await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_seen_as_gone_or_as_on_its_way() {
    let store = store();
    list(&store, [object("a", 1)]);
    let gone = Want::Gone {
        uid: "uid-a".into(),
    };
    store.expect(&key("a"), &writer(), gone);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), store.shows_writes_to(&key("a")))
            .await
            .is_err()
    );
    let mut terminating = object("a", 2);
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    store.put(terminating);
    store.shows_writes_to(&key("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_is_bounded_and_given_up_once() {
    let store = store();
    list(&store, [object("a", 1)]);
    store.expect(&key("a"), &writer(), Want::Version(99));
    let error = store.shows_writes_to(&key("a")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache did not show the write to configmaps n/a within 10 s"
    );
    store.shows_writes_to(&key("a")).await.unwrap();
}

proptest! {
    /// Whatever the watch brings, subscribers can rebuild the store from what they were told.
    #[test]
    fn subscribers_see_everything(steps in prop::collection::vec((0_u8..4, 0_u8..4), 0..60)) {
        let store = store();
        let mirror: Arc<Mutex<BTreeMap<Key, u64>>> = Arc::default();
        let sink = Arc::clone(&mirror);
        store.subscribe(move |change| {
            let mut mirror = sink.lock().unwrap();
            let key = change.key().unwrap().clone();
            assert_eq!(mirror.get(&key).copied(), change.old.map(|old| old.version));
            match change.new {
                Some(new) => mirror.insert(key, new.version),
                None => mirror.remove(&key),
            };
        });
        let mut truth: BTreeMap<u8, u64> = BTreeMap::new();
        let mut version = 0;
        for (step, name) in steps {
            version += 1;
            match step {
                0 | 1 => {
                    truth.insert(name, version);
                    store.put(object(&name.to_string(), version));
                }
                2 if truth.remove(&name).is_some() => store.remove(object(&name.to_string(), version)),
                _ => {
                    // The watch broke, something happened unseen, and everything is listed again.
                    truth.remove(&name);
                    list(&store, truth.iter().map(|(name, version)| object(&name.to_string(), *version)));
                }
            }
        }
        let want: BTreeMap<Key, u64> =
            truth.iter().map(|(name, version)| (key(&name.to_string()), *version)).collect();
        prop_assert_eq!(&*mirror.lock().unwrap(), &want);
        prop_assert_eq!(store.keys(), want.keys().cloned().collect::<Vec<_>>());
    }
}
