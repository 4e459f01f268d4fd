use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use serde_json::json;

use std::collections::BTreeMap;

use super::{
    super::{
        expectation::{Want, Writer},
        state::UNSEEN,
    },
    *,
};

fn store() -> Arc<Store> {
    Arc::new(Store::new(
        KindInfo::of::<ConfigMap>(),
        Scope::all(),
        "us".into(),
        None,
        Metrics::default(),
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
        let version = |object: Option<&Delivered>| object.map(|object| object.version);
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
    store.list_begins(0);
    for object in objects {
        store.put(0, object);
    }
    store.list_ends(0, 0);
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
    store.list_begins(0);
    store.put(0, object("b", 2));
    list(&store, [object("a", 1), object("b", 2)]);
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn memos_of_objects_that_no_watch_shows_are_bounded() {
    let store = store();
    list(&store, [object("a", 1)]);
    let memo = |intent| Memo {
        source: None,
        intent,
        outcome: 0,
        version: 1,
    };
    store.remember(key("a"), memo(1));
    for number in 0..3 * UNSEEN {
        store.remember(key(&format!("unseen-{number}")), memo(2));
    }
    assert_eq!(store.memo(&key("a")), Some(memo(1)));
    assert!(store.lock().memos.len() <= UNSEEN + 1);
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
    store.put(0, owned("a", 3, "y"));
    store.put(0, object("b", 4));
    assert_eq!((names("x"), names("y")), (vec![], vec!["a".to_owned()]));
    store.remove(0, owned("a", 5, "y"));
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
    store.put(0, object("a", 7));
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
    store.put(0, object("b", 9));
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
        version: 1,
    };
    store.expect(&key("a"), &writer(), gone);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), store.shows_writes_to(&key("a")))
            .await
            .is_err()
    );
    let mut terminating = object("a", 2);
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    store.put(0, terminating);
    store.shows_writes_to(&key("a")).await.unwrap();
}

#[test]
fn whoever_takes_the_last_finalizer_waits_for_the_end_and_not_for_a_version() {
    let store = store();
    let mut going = object("a", 2);
    going["metadata"]["uid"] = json!("uid-a");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    going["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    let mut released = going.clone();
    going["metadata"]["finalizers"] = json!(["example.com/a"]);
    list(&store, [going.clone()]);
    // The server answers with the version that the object had before.
    store.expect(&key("a"), &writer(), Want::of(&released));
    assert!(
        store.owes(&writer()),
        "it is still shown with its finalizer"
    );
    store.put(0, object("b", 3));
    assert!(
        store.owes(&writer()),
        "another object's news are not its end"
    );
    store.remove(0, object("a", 4));
    assert!(!store.owes(&writer()));
    // What a node still holds goes later, and has a new version.
    released["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    assert_eq!(Want::of(&released), Want::Version(2));
    assert_eq!(Want::of(&going), Want::Version(2));
}

#[tokio::test(start_paused = true)]
async fn a_delete_of_what_the_cache_has_not_shown_yet_is_waited_for() {
    let store = store();
    list(&store, [object("b", 3)]);
    store.expect(&key("a"), &writer(), Want::Version(5));
    let gone = Want::Gone {
        uid: "uid-a".into(),
        version: 5,
    };
    store.expect(&key("a"), &writer(), gone);
    assert!(store.owes(&writer()), "not there yet is not gone");
    store.put(0, object("a", 5));
    assert!(store.owes(&writer()));
    store.remove(0, object("a", 6));
    assert!(!store.owes(&writer()));
}

#[tokio::test(start_paused = true)]
async fn another_object_of_that_name_is_told_from_the_one_before() {
    let store = store();
    list(&store, [object("a", 3)]);
    let gone = |uid: &str| Want::Gone {
        uid: uid.into(),
        version: 7,
    };
    store.expect(&key("a"), &writer(), gone("the second"));
    assert!(store.owes(&writer()), "what is shown came before it");
    let mut third = object("a", 9);
    third["metadata"]["uid"] = json!("the third");
    store.put(0, third);
    assert!(!store.owes(&writer()));
}

#[tokio::test(start_paused = true)]
async fn waiting_is_bounded_but_the_write_is_not_forgotten() {
    let store = store();
    list(&store, [object("a", 1)]);
    store.expect(&key("a"), &writer(), Want::Version(99));
    for _ in 0..2 {
        let error = store.shows_writes_to(&key("a")).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the cache did not show the write to configmaps n/a within 10 s"
        );
    }
    assert_eq!(store.waits(), 2);
    store.reached(0, 99);
    store.shows_writes_to(&key("a")).await.unwrap();
    assert_eq!(store.waits(), 2, "a current cache is not waited for");
}

#[test]
fn deleted_and_made_anew_are_two_changes() {
    let store = store();
    list(&store, [object("a", 1)]);
    let log = log(&store);
    let mut again = object("a", 4);
    again["metadata"]["uid"] = json!("another");
    list(&store, [again]);
    assert_eq!(
        *log.lock().unwrap(),
        ["a Some(1) -> None", "a None -> Some(4)"]
    );
}

#[test]
fn an_older_state_is_no_news() {
    let store = store();
    list(&store, [object("a", 5)]);
    let log = log(&store);
    list(&store, [object("a", 3)]);
    assert!(log.lock().unwrap().is_empty());
    assert_eq!(store.get(&key("a")).unwrap().version, 5);
}

#[test]
fn a_kind_that_is_not_served_any_more_has_no_objects() {
    let store = store();
    list(&store, [object("a", 1)]);
    let log = log(&store);
    store.expect(&key("a"), &writer(), Want::Version(9));
    store.not_served();
    assert_eq!(*log.lock().unwrap(), ["a Some(1) -> None"]);
    assert!(store.is_missing() && store.size() == Size::default() && !store.owes(&writer()));
    list(&store, [object("a", 12)]);
    assert!(!store.is_missing());
    assert_eq!(log.lock().unwrap().len(), 2);
}

#[test]
fn each_namespace_has_a_watch_of_its_own() {
    let scope = Scope::all().namespace("n").namespace("m");
    let store = Store::new(
        KindInfo::of::<ConfigMap>(),
        scope,
        "us".into(),
        None,
        Metrics::default(),
    );
    // In the order of their names: `m` is the first.
    list(&store, []);
    assert!(!store.is_synced(), "one of two");
    store.list_begins(1);
    store.put(1, object("a", 4));
    store.list_ends(1, 4);
    assert!(store.is_synced());
    store.expect(&key("a"), &writer(), Want::Version(6));
    store.reached(0, 9);
    assert!(store.owes(&writer()), "the other watch says nothing of it");
    list(&store, []);
    assert!(store.get(&key("a")).is_some(), "nor does its list");
    store.reached(1, 6);
    assert!(!store.owes(&writer()));
    let elsewhere = Key::namespaced("x", "a");
    store.expect(&elsewhere, &writer(), Want::Version(99));
    assert!(!store.owes(&writer()), "nobody will ever show it");
}

#[test]
fn an_index_follows_its_objects() {
    let store = store();
    list(&store, [object("a", 1)]);
    let app = |object: &Delivered| vec![object.labels.get("app").unwrap_or("").into()];
    let index = store.index(Box::new(app));
    let names = |value: &str| -> Vec<String> {
        let found = store.indexed(index, value);
        found.iter().map(|object| object.key.to_string()).collect()
    };
    assert_eq!(names("a"), ["n/a"], "what was there before is in it");
    store.put(0, object("b", 2));
    let mut moved = object("a", 3);
    moved["metadata"]["labels"]["app"] = json!("b");
    store.put(0, moved);
    assert!(names("a").is_empty());
    assert_eq!(names("b"), ["n/a", "n/b"]);
    store.remove(0, object("b", 4));
    assert_eq!(names("b"), ["n/a"]);
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
                    store.put(0, object(&name.to_string(), version));
                }
                2 if truth.remove(&name).is_some() => store.remove(0, object(&name.to_string(), version)),
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

proptest! {
    /// What is found by an index is what trying every object finds, whatever came and went since
    /// the label was first selected by.
    #[test]
    fn selecting_finds_what_matches(steps in prop::collection::vec((0_u8..3, 0_u8..6, 0_u8..3, any::<bool>()), 0..60)) {
        let store = store();
        list(&store, []);
        let equal = |label: &str, value: u8| Expression::Equal(label.into(), value.to_string());
        let selectors = [
            vec![equal("a", 0)],
            vec![equal("a", 1), equal("b", 1)],
            vec![Expression::In("b".into(), ["2".into()].into()), Expression::Exists("a".into())],
            vec![Expression::NotEqual("a".into(), "1".into())],
        ];
        for (version, (step, name, value, owned)) in (1_u64..).zip(steps) {
            let mut object = json!({"metadata": {
                "name": format!("o{name}"), "namespace": format!("n{}", name % 2),
                "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
                "labels": {"a": (value % 2).to_string(), "b": value.to_string()},
            }});
            if owned {
                object["metadata"]["ownerReferences"] =
                    json!([{"apiVersion": "v1", "kind": "O", "name": "o", "uid": "o", "controller": true}]);
            }
            match step {
                0 => store.remove(0, object),
                _ => store.put(0, object),
            }
            for namespace in [None, Some("n0"), Some("n1")] {
                for selector in &selectors {
                    let all = store.select(namespace, &[]);
                    let matching = all.iter().filter(|one| one.labels.match_all(selector));
                    let keys = |found: Vec<Arc<CachedObject>>| found.iter().map(|one| one.key.clone()).collect::<Vec<_>>();
                    let matching: Vec<_> = matching.cloned().collect();
                    prop_assert_eq!(keys(store.select(namespace, selector)), keys(matching.clone()));
                    let orphans = matching.into_iter().filter(|one| one.controller.is_none()).collect();
                    prop_assert_eq!(keys(store.orphans(namespace, selector)), keys(orphans));
                }
            }
        }
    }
}

#[test]
fn answer_to_a_write_is_what_the_watch_shows_and_is_not_decoded_again() {
    let decoded = |transform: Option<Transform>| {
        let store = Store::new(
            KindInfo::of::<ConfigMap>(),
            Scope::all(),
            "us".into(),
            transform,
            Metrics::default(),
        );
        let answer: ConfigMap = serde_json::from_value(object("a", 7)).unwrap();
        let answer = Arc::new(answer);
        store.expects(&key("a"), 7, 100, &answer);
        let read = |version| -> Arc<ConfigMap> {
            store.put(0, object("a", version));
            store.typed(&store.get(&key("a")).unwrap()).unwrap()
        };
        let shown = read(7);
        assert_eq!(shown.metadata.name, answer.metadata.name);
        assert!(!Arc::ptr_eq(&read(8), &answer), "another version");
        !Arc::ptr_eq(&shown, &answer)
    };
    assert!(!decoded(None));
    // What a transform makes of it is not what was answered.
    assert!(decoded(Some(Arc::new(|_| {}))));
}
