//! No power cut at any instant loses an acknowledged write.

use proptest::prelude::*;

use super::super::forgetful::{Cut, Disk, Forgetful, Tear};
use super::*;
use ChangeKind::{Added, Deleted, Modified};

/// What is wrong with what a power cut at `moment` leaves, if anything is.
fn check(scene: &Scene, moment: &Disk, cut: Cut) -> Result<(), String> {
    let files = moment.after(cut);
    let after = Scene::open(&files).map_err(|error| format!("{cut:?}: not readable: {error}"))?;
    let revision = after.store.revision();
    if revision < moment.acknowledged {
        return Err(format!(
            "{cut:?}: {} was acknowledged, {revision} is left",
            moment.acknowledged
        ));
    }
    if after.objects() != scene.expected(revision) {
        return Err(format!("{cut:?}: not what was there at {revision}"));
    }
    // What is shown now must not be lost by a second cut.
    let nothing = Cut {
        bytes: 0,
        tear: Tear::Prefix,
        names_kept: false,
    };
    let again = Scene::open(&files.disk().after(nothing)).map_err(|error| error.to_string())?;
    if again.store.revision() != revision {
        return Err(format!(
            "{cut:?}: what was recovered was lost by the next cut"
        ));
    }
    Ok(())
}

/// Cuts the power at every instant of a scene, in every way.
fn check_all(scene: &Scene) -> Result<usize, String> {
    let mut cuts = 0;
    for moment in scene.files.moments() {
        // What is longer is the room that is tried out for a log, which is all zeros.
        let unsynced = moment.unsynced();
        for bytes in (0..=unsynced.min(1_000)).chain([unsynced]) {
            for tear in [Tear::Prefix, Tear::ZeroedTail, Tear::ZeroedHead] {
                for names_kept in [true, false] {
                    let cut = Cut {
                        tear,
                        bytes,
                        names_kept,
                    };
                    check(scene, &moment, cut)?;
                    cuts += 1;
                }
            }
        }
    }
    Ok(cuts)
}

/// A scene long enough for several snapshots.
fn play(files: &Forgetful) -> Scene {
    let mut scene = Scene::open(files).unwrap();
    files.remember();
    for batch in [
        &[op(Added, 0, 0), op(Added, 1, 0)][..],
        &[op(Modified, 0, 0)],
        &[op(Added, 0, 1), op(Deleted, 1, 0)],
        &[op(Modified, 0, 0)],
        &[op(Modified, 0, 1)],
        &[op(Deleted, 0, 1)],
        &[op(Added, 1, 2)],
        &[op(Modified, 0, 0), op(Modified, 0, 0)],
    ] {
        for op in batch {
            scene.make(*op).unwrap();
        }
        scene.write();
    }
    scene
}

#[test]
fn no_acknowledged_write_is_lost_at_any_cut() {
    let scene = play(&Forgetful::default());
    let names: Vec<String> = scene.files.contents().into_keys().collect();
    assert!(
        names.iter().any(|name| name.ends_with(".snapshot")),
        "{names:?}"
    );
    assert!(
        !names.contains(&"00000001.log".to_owned()),
        "old logs are removed: {names:?}"
    );
    let cuts = check_all(&scene).unwrap();
    println!("{cuts} power cuts");
    assert!(cuts > 10_000);
}

#[test]
fn a_store_that_does_not_sync_its_files_is_caught() {
    let files = Forgetful::default();
    files.disk().no_sync = true;
    assert!(check_all(&play(&files)).is_err());
}

#[test]
fn a_store_that_does_not_sync_its_folder_is_caught() {
    let files = Forgetful::default();
    files.disk().no_folder_sync = true;
    assert!(check_all(&play(&files)).is_err());
}

fn any_op() -> impl Strategy<Value = Op> {
    let kind = proptest::sample::select(vec![
        ChangeKind::Added,
        ChangeKind::Modified,
        ChangeKind::Modified,
        ChangeKind::Deleted,
    ]);
    (kind, 0..2_usize, 0..3_usize).prop_map(|(kind, number, name)| op(kind, number, name))
}

/// What happens in a random run.
#[derive(Clone, Debug)]
enum Step {
    Make(Op),
    Write,
    /// The process is killed: what it wrote is still with the kernel.
    Kill,
    Cut(Cut),
    FailSyncs(usize),
    Fill(usize),
    Empty,
}

fn any_step() -> impl Strategy<Value = Step> {
    let tear = proptest::sample::select(vec![Tear::Prefix, Tear::ZeroedTail, Tear::ZeroedHead]);
    let cut = (tear, 0..900_usize, any::<bool>()).prop_map(|(tear, bytes, names_kept)| {
        Step::Cut(Cut {
            tear,
            bytes,
            names_kept,
        })
    });
    prop_oneof![
        12 => any_op().prop_map(Step::Make),
        6 => Just(Step::Write),
        1 => Just(Step::Kill),
        1 => cut,
        1 => (1..3_usize).prop_map(Step::FailSyncs),
        1 => (0..20_000_usize).prop_map(Step::Fill),
        2 => Just(Step::Empty),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_recovered_is_a_prefix_with_all_that_was_acknowledged(
        steps in proptest::collection::vec(any_step(), 1..80),
    ) {
        let mut scene = Scene::open(&Forgetful::default()).unwrap();
        for step in steps {
            match step {
                Step::Make(op) => {
                    // Refused while the disk fails.
                    let _ = scene.make(op);
                }
                Step::Write => scene.write(),
                Step::FailSyncs(count) => scene.files.disk().failing_syncs = count,
                Step::Fill(room) => scene.files.disk().room = Some(room),
                Step::Empty => scene.files.disk().room = None,
                Step::Kill | Step::Cut(_) => {
                    let acknowledged = scene.store.revision();
                    let files = match step {
                        Step::Cut(cut) => scene.files.disk().after(cut),
                        _ => scene.files.clone(),
                    };
                    files.disk().room = None;
                    files.disk().failing_syncs = 0;
                    let mut after = Scene::open(&files).unwrap();
                    let revision = after.store.revision();
                    prop_assert!(revision >= acknowledged);
                    // A write that failed may have reached the disk all the same, as with any
                    // server that dies before it can tell; nothing else may be there.
                    prop_assert_eq!(after.objects(), scene.expected(revision));
                    after.made = scene.made;
                    after.made.append(&mut scene.failed);
                    after.made.retain(|(at, ..)| *at <= revision);
                    scene = after;
                }
            }
        }
    }
}
