//! Files that cannot be read are refused, and left as they are.

use super::super::frame::{FileKind, Header};
use super::*;

fn furnished() -> Forgetful {
    let files = Forgetful::default();
    let mut scene = Scene::open(&files).unwrap();
    for name in 0..3 {
        scene.make(op(ChangeKind::Added, 0, name)).unwrap();
        scene.writer.journal.snapshot_after(u64::MAX / 4);
        scene.write();
    }
    files
}

/// Why the folder is refused; it must be as it was afterwards.
fn refusal(files: &Forgetful) -> String {
    let before = files.contents();
    let error = Scene::open(files).err().expect("it is refused").to_string();
    assert_eq!(files.contents(), before);
    error
}

#[test]
fn another_programs_file_is_refused() {
    let files = furnished();
    files.put("00000001.log", b"dear diary, today I wrote no log at all");
    assert_eq!(
        refusal(&files),
        "00000001.log cannot be read: it is not a log of windlass"
    );
    files.put("00000001.log", b"");
    assert_eq!(
        refusal(&files),
        "00000001.log cannot be read: it is not a log of windlass"
    );
}

#[test]
fn a_later_version_is_refused() {
    let files = Forgetful::default();
    let header = Header {
        kind: FileKind::Log,
        number: 1,
        base: 0,
    };
    let mut bytes = header.encode();
    bytes[8] = 2;
    files.put("00000001.log", &bytes);
    assert_eq!(
        refusal(&files),
        "00000001.log cannot be read: its format is version 2; this windlass reads version 1"
    );
    bytes[8] = 1;
    bytes[20] ^= 1;
    files.put("00000001.log", &bytes);
    assert_eq!(
        refusal(&files),
        "00000001.log cannot be read: its header is damaged"
    );
}

#[test]
fn a_damaged_middle_is_refused_and_a_damaged_end_is_cut_off() {
    let files = furnished();
    let whole = files.contents().remove("00000001.log").unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    files.put("00000001.log", &damaged);
    assert!(refusal(&files).starts_with("00000001.log is damaged at byte 36, before its end"));

    let mut torn = whole.clone();
    *torn.last_mut().unwrap() ^= 1;
    files.put("00000001.log", &torn);
    let scene = Scene::open(&files).unwrap();
    assert_eq!(scene.store.revision(), 2);
    assert!(files.contents()["00000001.log"].len() < whole.len());
}

#[test]
fn missing_files_are_refused() {
    let files = Forgetful::default();
    let mut scene = Scene::open(&files).unwrap();
    scene.make(op(ChangeKind::Added, 0, 0)).unwrap();
    for _ in 0..8 {
        scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
        scene.write();
    }
    let logs: Vec<String> = files.contents().into_keys().collect();
    let last = logs.iter().rfind(|name| name.contains(".log")).unwrap();
    super::super::Files::remove(&files, last).unwrap();
    assert_eq!(
        refusal(&files),
        format!(
            "{last} is missing: restore it from a backup (to start with nothing, move the folder away and keep it)"
        )
    );
}

#[test]
fn files_of_others_beside_ours_are_left_alone() {
    let files = furnished();
    files.put("notes.txt", b"mine");
    let scene = Scene::open(&files).unwrap();
    assert_eq!(scene.store.revision(), 3);
    assert_eq!(files.contents()["notes.txt"], b"mine");
}

/// A folder with two snapshots, and logs before, between and after them.
fn with_two_snapshots() -> (Forgetful, BTreeMap<Place, Value>) {
    let files = Forgetful::default();
    let mut scene = Scene::open(&files).unwrap();
    scene.make(op(ChangeKind::Added, 0, 0)).unwrap();
    scene.make(op(ChangeKind::Added, 1, 1)).unwrap();
    let snapshots = || {
        let names = files.contents().into_keys();
        names.filter(|name| name.ends_with(".snapshot")).count()
    };
    while snapshots() < 2 {
        scene.make(op(ChangeKind::Modified, 0, 0)).unwrap();
        scene.write();
    }
    scene.writer.journal.snapshot_after(u64::MAX / 4);
    scene.make(op(ChangeKind::Modified, 1, 1)).unwrap();
    scene.write();
    (files, scene.objects())
}

#[test]
fn damaged_old_snapshot_or_log_costs_only_the_past() {
    let (files, objects) = with_two_snapshots();
    let names: Vec<String> = files.contents().into_keys().collect();
    let snapshots: Vec<&String> = names
        .iter()
        .filter(|name| name.ends_with(".snapshot"))
        .collect();
    let newest = snapshots.last().unwrap().trim_end_matches(".snapshot");
    let before = |name: &&String| name.split('.').next().unwrap() < newest;
    for old in names.iter().filter(before) {
        let whole = files.contents().remove(old).unwrap();
        for at in [8, 20, 50, whole.len() / 2, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            files.put(old, &damaged);
            let scene =
                Scene::open(&files).unwrap_or_else(|error| panic!("{old} at {at}: {error}"));
            assert_eq!(scene.objects(), objects, "{old} at {at}");
        }
        files.put(old, &whole);
    }
    // Of what only the newest files hold, nothing may be lost in silence.
    let damaged = format!("{newest}.snapshot");
    let old = snapshots[0];
    for name in [&damaged, old] {
        let mut bytes = files.contents().remove(name).unwrap();
        bytes[50] ^= 1;
        files.put(name, &bytes);
    }
    assert!(refusal(&files).starts_with(&format!("{damaged} is damaged at byte 36")));
}

#[test]
fn no_message_advises_to_delete_what_could_be_saved() {
    let damaged = JournalError::Damaged {
        name: "1.log".to_owned(),
        offset: 7,
    };
    for error in [damaged, JournalError::Missing("1.log".to_owned())] {
        let said = error.to_string();
        assert!(
            !said.contains("remove") && !said.contains("delete"),
            "{said}"
        );
    }
}
