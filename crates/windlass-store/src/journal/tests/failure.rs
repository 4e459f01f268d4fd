//! A disk that is full or broken: writes fail and say why, reads go on, and it mends itself.

use super::*;

fn furnished() -> Scene {
    let mut scene = Scene::open(&Forgetful::default()).unwrap();
    scene.make(op(ChangeKind::Added, 0, 0)).unwrap();
    scene.write();
    scene
}

fn refusal(scene: &mut Scene) -> String {
    match scene.make(op(ChangeKind::Modified, 0, 0)) {
        Err(WriteError::Storage(why)) => why.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let mut scene = furnished();
    let before = scene.objects();
    scene.files.disk().room = Some(50);
    scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
    scene.make(op(ChangeKind::Added, 0, 1)).unwrap();
    scene.write();
    // Both are taken back: for readers and for writers.
    assert_eq!(scene.store.revision(), 1);
    assert_eq!(scene.objects(), before);
    assert!(scene.found((0, 1)).is_none());
    assert_eq!(scene.failed.len(), 2);
    assert!(refusal(&mut scene).starts_with("the disk of the data folder is full"));
    // Tried again in vain.
    scene.write();
    assert!(refusal(&mut scene).starts_with("the disk of the data folder is full"));

    scene.files.disk().room = None;
    scene.write();
    scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
    scene.write();
    assert_eq!(scene.objects(), scene.expected(u64::MAX));
    let after = Scene::open(&scene.files).unwrap();
    assert_eq!(after.objects(), scene.objects());
    assert_eq!(after.store.revision(), scene.store.revision());
}

#[test]
fn after_a_failed_sync_the_end_of_that_log_is_not_trusted() {
    let mut scene = furnished();
    scene.files.disk().failing_syncs = 1;
    scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
    scene.write();
    assert!(refusal(&mut scene).contains("the disk is broken"));
    scene.write();
    scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
    scene.write();
    let acknowledged = scene.store.revision();
    let cut = super::super::forgetful::Cut {
        tear: super::super::forgetful::Tear::Prefix,
        bytes: 0,
        names_kept: false,
    };
    let left = scene.files.disk().after(cut);
    let after = Scene::open(&left).unwrap();
    assert_eq!(after.store.revision(), acknowledged);
    assert_eq!(after.objects(), scene.expected(acknowledged));
}

#[test]
fn requests_that_wait_for_a_failed_write_are_told() {
    let mut scene = furnished();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let Scene {
        files,
        store,
        writer,
        ..
    } = &mut scene;
    let store = &*store;
    let value = |name: &str| json!({"metadata": {"namespace": "default", "name": name}});
    let create = |name: &'static str| {
        store.durably(async move {
            let key = Key::new("default", name);
            store.create(&table(0), key, value(name), &[]).unwrap();
        })
    };
    runtime.block_on(async {
        let mut waits = std::pin::pin!(create("a"));
        assert!(futures::poll!(&mut waits).is_pending());
        assert!(
            store
                .published()
                .get(&table(0), &Key::new("default", "a"))
                .is_none()
        );
        writer.step(Some(Duration::ZERO));
        waits.await.expect("it is durable");
        assert!(
            store
                .published()
                .get(&table(0), &Key::new("default", "a"))
                .is_some()
        );

        files.disk().failing_syncs = 1;
        let mut fails = std::pin::pin!(create("b"));
        assert!(futures::poll!(&mut fails).is_pending());
        writer.step(Some(Duration::ZERO));
        assert!(fails.await.is_err());
        assert!(store.get(&table(0), &Key::new("default", "b")).is_none());
    });
}
