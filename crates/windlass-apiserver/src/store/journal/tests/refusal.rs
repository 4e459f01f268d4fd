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
        format!("{last} is missing: restore it, or remove the folder to start with nothing")
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
