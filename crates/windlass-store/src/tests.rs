use super::*;
use serde_json::json;

fn table() -> TableName {
    TableName::new("", "configmaps")
}

fn object(name: &str, value: &str) -> Value {
    json!({"metadata": {"namespace": "default", "name": name, "uid": name}, "data": {"k": value}})
}

fn names(listing: &Listing) -> Vec<&str> {
    listing
        .objects
        .iter()
        .map(|object| object.key.name())
        .collect()
}

#[test]
fn a_write_from_a_stale_revision_is_refused() {
    let store = Store::new(std::time::Duration::from_mins(5));
    let key = Key::new("default", "a");
    let first = store
        .create(&table(), key.clone(), object("a", "1"), &[])
        .unwrap();
    store
        .update(&table(), key.clone(), first.revision, object("a", "2"), &[])
        .unwrap();
    let stale = store.update(&table(), key.clone(), first.revision, object("a", "3"), &[]);
    assert!(matches!(stale, Err(WriteError::Changed)));
    assert!(matches!(
        store.create(&table(), key, object("a", "4"), &[]),
        Err(WriteError::Exists)
    ));
    assert_eq!(store.revision(), 2);
}

#[test]
fn a_list_at_an_older_revision_undoes_what_came_later() {
    let store = Store::new(std::time::Duration::from_mins(5));
    let a = store
        .create(&table(), Key::new("default", "a"), object("a", "1"), &[])
        .unwrap();
    store
        .create(&table(), Key::new("default", "b"), object("b", "1"), &[])
        .unwrap();
    let then = store.revision();
    store
        .create(&table(), Key::new("default", "c"), object("c", "1"), &[])
        .unwrap();
    store
        .delete(
            &table(),
            Key::new("default", "a"),
            a.revision,
            object("a", "1"),
            &[],
        )
        .unwrap();
    assert_eq!(
        names(&store.list(&table(), None, None, Some(then)).unwrap()),
        ["a", "b"]
    );
    assert_eq!(
        names(&store.list(&table(), None, None, None).unwrap()),
        ["b", "c"]
    );
    assert_eq!(
        store.list(&table(), None, None, Some(99)).err(),
        Some(RevisionError::Future)
    );
}

#[test]
fn changes_older_than_what_is_kept_are_compacted() {
    let store = Store::new(std::time::Duration::from_mins(5));
    let key = Key::new("default", "a");
    let mut last = store
        .create(&table(), key.clone(), object("a", "0"), &[])
        .unwrap()
        .revision;
    for n in 0..=CHANGES_KEPT {
        last = store
            .update(
                &table(),
                key.clone(),
                last,
                object("a", &n.to_string()),
                &[],
            )
            .unwrap()
            .revision;
    }
    assert_eq!(
        store.changes_after(&table(), 1, usize::MAX).err(),
        Some(RevisionError::Compacted(2))
    );
    assert_eq!(
        store
            .changes_after(&table(), last - 1, usize::MAX)
            .unwrap()
            .len(),
        1
    );
}
