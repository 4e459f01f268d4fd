//! Ctrl-C at any moment leaves nothing half-done.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use windlass_tests::machine::{self, Traces};
use windlass_tests::{Folder, Signal, becomes, interruptible, program, signal};

/// At how many moments a command is interrupted, from its beginning to long after its end.
const MOMENTS: u32 = 12;

/// Starts `windlass`, presses Ctrl-C after a while, and tells how it ended.
fn interrupted(folder: &Path, arguments: &[&str], after: Duration) -> ExitStatus {
    let mut child = interruptible(program())
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("windlass runs");
    becomes(&child, "windlass");
    std::thread::sleep(after);
    if let Ok(None) = child.try_wait() {
        signal(
            i32::try_from(child.id()).expect("a process number"),
            Signal::INT,
        );
    }
    child.wait().expect("it ends")
}

/// All files below a folder and what is in them.
fn tree(folder: &Path) -> String {
    let listed = Command::new("bash")
        .args([
            "-c",
            "find . -print | sort; find . -type f -print0 | sort -z | xargs -0 -r sha256sum",
        ])
        .current_dir(folder)
        .output()
        .expect("bash runs");
    String::from_utf8_lossy(&listed.stdout).into_owned()
}

/// Interrupts a command at many moments, each time in the same folder as it was before; it must
/// have done everything or nothing. Says how often it had done nothing.
fn all_or_nothing(folder: &Path, arguments: &[&str]) -> (u32, u32) {
    let keep = folder.with_extension("before");
    let copy = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        let done = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(done.expect("cp runs").success());
    };
    copy(folder, &keep);
    let before = tree(folder);
    let began = Instant::now();
    let done = Command::new(program())
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("windlass runs");
    let whole = began.elapsed();
    assert!(done.status.success(), "{done:?}");
    let after = tree(folder);
    assert_ne!(before, after);
    let (mut nothing, mut everything) = (0, 0);
    for step in 0..4 * MOMENTS {
        if step >= MOMENTS && nothing > 0 && everything > 0 {
            break;
        }
        copy(&keep, folder);
        // A busy machine may have been quicker when it was measured, or slow to send the signal.
        let moment = if step >= MOMENTS && nothing == 0 {
            Duration::ZERO
        } else {
            whole * step * 2 / MOMENTS
        };
        let status = interrupted(folder, arguments, moment);
        let found = tree(folder);
        if found == before {
            nothing += 1;
            assert!(!status.success(), "{arguments:?} said that it was done");
        } else {
            assert_eq!(found, after, "{arguments:?} after {moment:?}");
            everything += 1;
        }
    }
    (nothing, everything)
}

#[test]
fn scaffolding_is_done_or_not_begun() {
    let folder = Folder::new("interrupted-scaffold");
    let root = folder.path().join("work");
    fs::create_dir(&root).expect("a folder can be made");
    for arguments in [
        &["init", "--domain", "example.com", "--name", "op"][..],
        &[
            "create",
            "api",
            "--group",
            "a",
            "--version",
            "v1",
            "--kind",
            "One",
        ],
        &[
            "create",
            "api",
            "--group",
            "a",
            "--version",
            "v2",
            "--kind",
            "One",
        ],
        &[
            "create",
            "webhook",
            "--group",
            "a",
            "--version",
            "v1",
            "--kind",
            "One",
            "--defaulting",
        ],
    ] {
        let (nothing, everything) = all_or_nothing(&root, arguments);
        println!("{arguments:?}: nothing {nothing} times, everything {everything} times");
        assert!(nothing > 0 && everything > 0, "{arguments:?}");
        let done = Command::new(program())
            .args(arguments)
            .current_dir(&root)
            .status();
        assert!(done.expect("windlass runs").success());
    }
}

#[test]
fn a_cluster_that_was_to_start_is_not_left_behind() {
    let folder = Folder::new("interrupted-up");
    let before = Traces::now(folder.path());
    let began = Instant::now();
    folder.windlass_ok(&["up", "--detach"]);
    let whole = began.elapsed();
    folder.windlass_ok(&["down"]);
    let (mut ended, mut started) = (0, 0);
    for step in 0..12 {
        let moment = whole * step / 8;
        let status = interrupted(folder.path(), &["up", "--detach"], moment);
        let running = folder.windlass(&["status"]).status.success();
        if status.success() {
            assert!(running, "it said that it runs");
            started += 1;
            folder.windlass_ok(&["down"]);
        } else {
            // Early on nothing listens yet, and the signal itself ends it.
            let how = (status.code(), status.signal());
            assert!(matches!(how, (Some(130), _) | (_, Some(2))), "{status:?}");
            ended += 1;
            if running {
                // It was ready, and only showing what runs: it says so, and `down` ends it.
                folder.windlass_ok(&["down"]);
            }
        }
        let now = Traces::now(folder.path());
        assert_eq!(now.processes, before.processes, "after {moment:?}");
        if machine::is_root() {
            assert_eq!(now, before, "after {moment:?}");
        }
    }
    println!("ended {ended} times, started {started} times");
    assert!(ended > 0);
}
