use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::scratch::Scratch;

#[test]
fn links_in_a_folder_are_not_followed() {
    let (scratch, other) = (Scratch::new("folder"), Scratch::new("folder-other"));
    fs::write(other.path().join("file"), "kept").expect("a file");
    symlink(other.path(), scratch.path().join("link")).expect("a link");
    symlink(other.path().join("file"), scratch.path().join("file")).expect("a link");
    symlink(other.path().join("new"), scratch.path().join("new")).expect("a link");
    let folder = Folder::open(scratch.path()).expect("a folder");
    assert!(folder.folder("link").is_err());
    assert!(folder.make("link", 0o755).is_err());
    assert!(folder.file("file").is_err());
    assert!(folder.create("new", 0o600).is_err());
    for name in ["..", ".", "", "a/b"] {
        assert!(folder.folder(name).is_err() && folder.remove(name).is_err());
    }
    folder.remove("link").expect("removed");
    folder.clear().expect("cleared");
    assert_eq!(folder.names().expect("names"), [] as [OsString; 0]);
    let kept = fs::read_to_string(other.path().join("file"));
    assert_eq!(kept.expect("the other folder's file"), "kept");
    assert!(!other.path().join("new").exists());
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let scratch = Scratch::new("pipe");
    let folder = Folder::open(scratch.path()).expect("a folder");
    rustix::fs::mkfifoat(&folder, "pipe", Mode::RUSR | Mode::WUSR).expect("a pipe");
    assert!(folder.file("pipe").is_err());
    assert!(open_file(&scratch.path().join("pipe")).is_err());
}

#[test]
fn a_root_keeps_absolute_links_and_parents_inside() {
    let scratch = Scratch::new("root");
    let at = |path: &str| scratch.path().join(path);
    fs::create_dir_all(at("root/etc")).expect("a folder");
    fs::create_dir_all(at("etc")).expect("a folder");
    fs::write(at("root/etc/name"), "inside").expect("a file");
    fs::write(at("etc/name"), "outside").expect("a file");
    symlink("/etc", at("root/absolute")).expect("a link");
    symlink("../../etc", at("root/upwards")).expect("a link");
    let root = Folder::open(&at("root")).expect("a folder");
    for path in ["absolute/name", "upwards/name", "../etc/name"] {
        let mut text = String::new();
        let mut file = root.file_as_root(Path::new(path)).expect("a file");
        file.read_to_string(&mut text).expect("text");
        assert_eq!(text, "inside", "{path}");
        assert!(root.beneath(Path::new(path)).is_err(), "{path}");
    }
}

#[test]
fn a_folder_that_is_deeper_than_a_stack_is_removed() {
    let scratch = Scratch::new("deep");
    let top = Folder::open(scratch.path()).expect("a folder");
    let mut folder = top.make("deep", 0o755).expect("a folder");
    for _ in 0..1_500 {
        folder.create("file", 0o600).expect("a file");
        folder = folder.make("deep", 0o755).expect("a folder");
        // Its path is for messages, and would be too long for any.
        folder.path = PathBuf::new();
    }
    drop(folder);
    // A thread of the node has less of a stack than this needs by recursion, and fewer files.
    let path = scratch.path().join("deep");
    let small = std::thread::Builder::new().stack_size(128 * 1024);
    let removed = small.spawn(move || remove_all(&path)).expect("a thread");
    removed.join().expect("no panic").expect("removed");
    assert!(!scratch.path().join("deep").exists());
}

#[test]
fn folders_without_permissions_are_removed() {
    let scratch = Scratch::new("closed");
    let inner = scratch.path().join("outer/inner");
    fs::create_dir_all(inner.join("innermost")).expect("folders");
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o0)).expect("a mode");
    let outer = scratch.path().join("outer");
    fs::set_permissions(&outer, fs::Permissions::from_mode(0o500)).expect("a mode");
    remove_all(&outer).expect("removed");
    remove_all(&outer).expect("nothing to remove");
    assert!(!outer.exists());
}

#[test]
fn what_is_set_aside_is_gone_at_once_and_known_for_what_it_is() {
    let scratch = Scratch::new("aside");
    let path = scratch.path().join("one");
    assert_eq!(set_aside(&path).expect("nothing to do"), None);
    fs::create_dir(&path).expect("a folder");
    let aside = set_aside(&path).expect("set aside").expect("a folder");
    assert!(!path.exists() && aside.is_dir());
    assert!(is_aside(aside.file_name().expect("a name")) && !is_aside(OsStr::new("one")));
    assert_eq!(set_aside(&aside).expect("as it is"), Some(aside));
}
