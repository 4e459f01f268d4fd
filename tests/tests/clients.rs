//! Programs written with other people's clients, run unchanged: `tests/clients/`.

use std::path::PathBuf;
use std::process::Command;

use windlass_tests::Folder;

/// Where `scripts/clients` has put the programs.
fn clients() -> PathBuf {
    let asked = std::env::var_os("WINDLASS_CLIENTS").map(PathBuf::from);
    let folder = asked.unwrap_or_else(|| root().join(".real/clients"));
    assert!(
        folder.join("clientgo").exists(),
        "{} has no programs; run scripts/clients, or scripts/test",
        folder.display()
    );
    folder
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a program against a cluster of its own, which must succeed, and gives what it printed.
fn run(test: &str, program: &mut Command) -> String {
    let folder = Folder::new(test);
    folder.windlass_ok(&["up", "--no-node", "--detach"]);
    let output = program
        .current_dir(folder.path())
        .env("KUBECONFIG", folder.path().join(".windlass/kubeconfig"))
        .output()
        .expect("the program runs");
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = shown(&output.stdout);
    assert!(
        output.status.success(),
        "{test} failed:\n{printed}{}",
        shown(&output.stderr)
    );
    printed
}

#[test]
fn a_client_go_program_with_protobuf_bodies() {
    let printed = run("clientgo", &mut Command::new(clients().join("clientgo")));
    assert!(
        printed.contains("ok metadata") && printed.contains("protobuf bodies: "),
        "{printed}"
    );
}

#[test]
fn a_controller_runtime_manager() {
    let printed = run("manager", &mut Command::new(clients().join("manager")));
    assert!(printed.contains("ok deleted"), "{printed}");
}

#[test]
fn the_python_client() {
    let program = root().join("tests/clients/python/client.py");
    let mut python = Command::new(clients().join("python/bin/python"));
    let printed = run("python", python.arg(program));
    assert!(printed.contains("ok reviews"), "{printed}");
}
