//! Tests that cannot run are counted as skipped at the end of the test command, not as passed.

use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use windlass_skip::skip;

/// Runs a command with its tests counted.
fn counted(command: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/count-tests");
    let output = Command::new(script).args(command).output();
    output.expect("scripts/count-tests runs")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "run by the test below: nothing but a test that is skipped"]
fn skipped_by_purpose() {
    skip("it is\nan example");
}

#[test]
fn skipped_test_is_counted_and_listed() {
    let program = std::env::current_exe().expect("a test has a program");
    let program = program.to_string_lossy();
    for threads in ["1", "2"] {
        let output = counted(&[
            &program,
            "--ignored",
            "--exact",
            "skipped_by_purpose",
            "--test-threads",
            threads,
        ]);
        let printed = printed(&output);
        assert!(output.status.success(), "{printed}");
        assert!(
            printed.contains("test result: ok. 1 passed"),
            "the harness counts it as passed: {printed}"
        );
        assert!(printed.contains("\nskipped:\n    skipped::"), "{printed}");
        assert!(printed.contains(": it is an example\n"), "{printed}");
        assert!(
            printed.ends_with("\n0 passed, 0 failed, 1 skipped, 0 ignored\n"),
            "{printed}"
        );
    }
}

#[test]
fn counts_of_several_programs_are_added_up() {
    let said = "\
     Running tests/one.rs (target/debug/deps/one-0123456789abcdef)
SKIPPED one::a::needs_root: sandboxes need root
test a::needs_root ... ok
test a::runs ... ok
test result: ok. 2 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s
SKIPPED two::in_parts: one part of it
SKIPPED two::in_parts: another part of it
SKIPPED two::fails: one part of it
test two ... SKIPPED two::on_one_thread: no etcd is installed
ok
test in_parts ... \u{1b}[32mok\u{1b}[m
test fails ... \u{1b}[31mFAILED\u{1b}[m
test result: \u{1b}[31mFAILED\u{1b}[m. 2 passed; 1 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s
";
    let output = counted(&["sh", "-c", "printf %s \"$0\"; exit 101", said]);
    assert_eq!(output.status.code(), Some(101));
    assert_eq!(
        printed(&output),
        format!(
            "{said}
skipped:
    one::a::needs_root: sandboxes need root
    two::in_parts: one part of it
    two::on_one_thread: no etcd is installed

1 passed, 1 failed, 3 skipped, 3 ignored
"
        )
    );
}

#[test]
fn process_that_outlives_the_tests_does_not_hold_up_the_count() {
    let output = counted(&["sh", "-c", "sleep 1000 & echo $!; kill -9 $$"]);
    let printed = printed(&output);
    let sleeps = printed.lines().next().and_then(|pid| pid.parse().ok());
    let sleeps = sleeps.and_then(Pid::from_raw).expect("a process number");
    kill_process(sleeps, Signal::KILL).expect("it is still there");
    assert_eq!(output.status.code(), Some(128 + 9));
    assert!(printed.ends_with("\n0 passed, 0 failed, 0 skipped, 0 ignored\n"));
}
