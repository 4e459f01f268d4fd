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
    let kubeconfig = folder.path().join(".windlass/kubeconfig");
    let program = program.current_dir(folder.path());
    succeeds(test, program.env("KUBECONFIG", kubeconfig))
}

/// Runs a program, which must succeed, and gives what it printed.
fn succeeds(test: &str, program: &mut Command) -> String {
    let output = program.output().expect("the program runs");
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
fn commands_and_ports_by_spdy_and_by_websocket() {
    let folder = Folder::new("spdy");
    folder.windlass_ok(&["up", "--runtime", "process", "--detach"]);
    let kubeconfig = folder.path().join(".windlass/kubeconfig");
    let mut program = Command::new(clients().join("spdy"));
    let printed = succeeds("spdy", program.env("KUBECONFIG", kubeconfig));
    assert_eq!(printed.lines().count(), 10, "{printed}");
}

/// Runs a test written with envtest on the stand-ins of `windlass envtest`.
fn envtest(controllers: &str) -> String {
    let folder = Folder::new(&format!("envtest-{controllers}"));
    let assets = folder.windlass_ok(&["envtest", "--dir", "assets"]);
    let kubectl = PathBuf::from(std::env::var_os("KUBECTL").expect("KUBECTL names a kubectl"));
    let mut path = kubectl.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut program = Command::new(clients().join("envtest"));
    let program = program
        .current_dir(folder.path())
        .env("KUBEBUILDER_ASSETS", assets.trim())
        .env("WINDLASS_CONTROLLERS", controllers)
        .env("PATH", path);
    succeeds("envtest", program)
}

#[test]
fn envtest_starts_the_api_server_without_controllers() {
    let printed = envtest("0");
    assert!(printed.contains("ok stopped"), "{printed}");
}

#[test]
fn envtest_with_controllers_ends_namespaces_and_collects_garbage() {
    let printed = envtest("1");
    assert!(printed.contains("ok stopped"), "{printed}");
}

#[test]
fn the_python_client() {
    let program = root().join("tests/clients/python/client.py");
    let mut python = Command::new(clients().join("python/bin/python"));
    let printed = run("python", python.arg(program));
    assert!(printed.contains("ok reviews"), "{printed}");
}
