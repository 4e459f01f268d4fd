//! Tests that cannot run on this machine: no root, no runtime, a missing program.
//!
//! The test harness knows passed and failed tests only, and hides what a passed one prints. So a test
//! that cannot run reports that here, and returns: the line goes to standard error past the harness,
//! where `scripts/count-tests` finds it and counts the test as skipped.

use std::fmt::Display;
use std::io::Write as _;
use std::panic::Location;

/// Reports that the running test is skipped, or that a part of it is, and why.
///
/// The test has its name from the thread it runs on; a test that runs on the main thread (with
/// `--test-threads 1`) is named by its place in the source.
#[track_caller]
pub fn skip(reason: impl Display) {
    let caller = Location::caller();
    let thread = std::thread::current();
    let test = match thread.name() {
        None | Some("main") => format!("{}:{}", caller.file(), caller.line()),
        Some(name) => name.to_owned(),
    };
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    // Not `eprintln`, which the harness keeps to itself. One write, so that lines stay whole.
    let line = line(binary(&program), &test, &reason.to_string());
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn line(binary: &str, test: &str, reason: &str) -> String {
    let reason = reason.replace('\n', " ");
    format!("SKIPPED {binary}::{test}: {reason}\n")
}

/// The name of a test binary without the hash that cargo appends.
fn binary(file: &str) -> &str {
    match file.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => {
            name
        }
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::{binary, line};

    #[test]
    fn name_of_a_binary_has_no_hash() {
        assert_eq!(binary("hostile_pod-0123456789abcdef"), "hostile_pod");
        assert_eq!(binary("hostile-pod"), "hostile-pod");
    }

    #[test]
    fn line_of_a_skipped_test_is_one_line() {
        assert_eq!(
            line("sandbox", "files::links", "needs root,\nand runc"),
            "SKIPPED sandbox::files::links: needs root, and runc\n"
        );
    }
}
