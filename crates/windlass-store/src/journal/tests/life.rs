//! What a restart keeps, and what stays bounded.

use super::*;
use crate::RevisionError;

#[test]
fn nobody_sees_a_write_before_it_is_durable() {
    let mut scene = Scene::open(&Forgetful::default()).unwrap();
    scene.make(op(ChangeKind::Added, 0, 0)).unwrap();
    scene.make(op(ChangeKind::Added, 0, 2)).unwrap();
    assert!(scene.found((0, 0)).is_some(), "other writes know of it");
    assert_eq!(scene.objects().len(), 0);
    assert_eq!(scene.store.revision(), 0);
    assert_eq!(
        scene
            .store
            .changes_after(&table(0), 0, usize::MAX)
            .unwrap()
            .len(),
        0
    );
    scene.write();
    assert_eq!(scene.objects(), scene.expected(u64::MAX));
    assert_eq!(
        scene
            .store
            .changes_after(&table(0), 0, usize::MAX)
            .unwrap()
            .len(),
        2
    );

    let before = scene.objects();
    scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
    scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
    scene.make(op(ChangeKind::Deleted, 0, 2)).unwrap();
    scene.make(op(ChangeKind::Added, 0, 1)).unwrap();
    assert_eq!(scene.objects(), before);
    let now = scene.store.published();
    assert!(now.get(&table(0), &key(2)).is_some());
    assert!(now.get(&table(0), &key(1)).is_none());
    scene.write();
    assert_eq!(scene.objects(), scene.expected(u64::MAX));
}

#[test]
fn many_writes_share_one_sync() {
    let mut scene = Scene::open(&Forgetful::default()).unwrap();
    let before = scene.files.disk().syncs;
    for name in 0..100 {
        scene.make(op(ChangeKind::Added, 0, name)).unwrap();
    }
    scene.writer.journal.snapshot_after(u64::MAX / 4);
    scene.write();
    assert_eq!(scene.files.disk().syncs, before + 1);
    assert_eq!(scene.store.revision(), 100);
}

#[test]
fn watches_go_on_after_a_restart() {
    let mut scene = Scene::open(&Forgetful::default()).unwrap();
    let mut told = Vec::new();
    let changes = |scene: &Scene, after| {
        let changes = scene.store.changes_after(&table(0), after, usize::MAX)?;
        let told = changes.iter().map(|change| {
            let previous = change
                .previous
                .as_ref()
                .map(|previous| previous.json.clone());
            (
                change.revision,
                change.kind,
                change.object.json.clone(),
                previous,
            )
        });
        Ok::<_, RevisionError>(told.collect::<Vec<_>>())
    };
    for round in 0..20 {
        for kind in [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted] {
            scene.make(op(kind, 0, round % 3)).unwrap();
            scene.write();
        }
        told = changes(&scene, 0).unwrap();
        let after = Scene::open(&scene.files).unwrap();
        assert_eq!(after.store.revision(), scene.store.revision());
        // As far back as it is known, it is the same; further back is refused.
        let last = told.last().unwrap().0;
        let since = (0..=last)
            .find(|since| changes(&after, *since).is_ok())
            .unwrap();
        let known = changes(&after, since).unwrap();
        assert_eq!(known, told[told.len() - known.len()..]);
        assert!(last - since <= 60);
        if since > 0 {
            let gone = RevisionError::Compacted(since);
            assert_eq!(changes(&after, since - 1), Err(gone));
            // Nor is it known what a table had that has nothing now.
            let other = after.store.changes_after(&table(1), since - 1, usize::MAX);
            assert_eq!(other.err(), Some(RevisionError::Compacted(since)));
        } else {
            assert_eq!(known.len(), told.len());
        }
    }
    assert_eq!(told.len(), 60);
}

#[test]
fn endless_updates_of_one_object_stay_bounded() {
    let mut scene = Scene::open(&Forgetful::default()).unwrap();
    scene.writer.journal.snapshot_after(100_000);
    scene.make(op(ChangeKind::Added, 0, 0)).unwrap();
    let mut largest = 0;
    for round in 0..20_000 {
        scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
        scene.made.clear();
        if round % 10 == 0 {
            scene.write();
        }
        if round % 500 == 0 {
            let size: usize = scene.files.contents().values().map(Vec::len).sum();
            largest = largest.max(size);
        }
    }
    assert!(largest < 350_000, "{largest} bytes in files");
    let names: Vec<String> = scene.files.contents().into_keys().collect();
    assert!(names.len() <= 5, "{names:?}");
}

#[test]
fn a_snapshot_holds_what_one_frame_does_not() {
    let mut scene = Scene::open(&Forgetful::default()).unwrap();
    for name in 0..9_000 {
        scene.make(op(ChangeKind::Added, 0, name)).unwrap();
    }
    scene.write();
    scene.make(op(ChangeKind::Modified, 0, 1)).unwrap();
    scene.writer.journal.snapshot_after(1);
    scene.write();
    scene.write();
    // The first log is gone, so reading starts with a snapshot.
    let names: Vec<String> = scene.files.contents().into_keys().collect();
    let snapshot = names
        .iter()
        .find(|name| name.ends_with(".snapshot"))
        .unwrap();
    assert!(scene.files.contents()[snapshot].len() > 1024 * 1024);
    let after = Scene::open(&scene.files).unwrap();
    assert_eq!(after.objects(), scene.expected(u64::MAX));
}
