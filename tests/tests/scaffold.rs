//! A scaffolded project is formatted, compiles without a warning, passes clippy and its own tests,
//! after each step a person may take; and what cannot be done is refused with nothing half-done.

use std::fs;

use windlass_tests::walkthrough::Terminal;

/// What has to hold after each step.
const CHECKS: &str =
    "cargo fmt --check\ncargo clippy --quiet --all-targets -- -D warnings\ncargo test --quiet";

#[test]
#[ignore = "builds a project of its own, from nothing: minutes; `make scaffold` runs it"]
fn every_step_leaves_a_project_that_works() {
    let terminal = Terminal::open("scaffold");
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    terminal.run(CHECKS);
    for step in [
        "create api --group cache --version v1 --kind Memcached --shortname mc",
        "create api --group cache --version v1alpha1 --kind RedisFailover",
        "create api --group apps --version v1alpha1 --kind SidecarSet --namespaced=false",
        "create api --group cache --version v2 --kind Memcached",
        "create webhook --group cache --version v1 --kind Memcached --defaulting --validation",
        "create webhook --group core --version v1 --kind Pod --defaulting",
        "alpha webhook --group apps --version v1alpha1 --kind SidecarSet --type=mutating --operations=create",
        "alpha webhook --group apps --version v1alpha1 --kind SidecarSet --type=validating --operations=create,update",
        "create api --group other --version v1 --kind Memcached",
    ] {
        println!("windlass {step}");
        terminal.run(&format!("windlass {step}"));
        terminal.run(CHECKS);
        // Again changes nothing.
        let before = tree(&terminal);
        terminal.run(&format!("windlass {step}"));
        assert_eq!(tree(&terminal), before, "windlass {step}, again");
    }
    terminal.run("windlass manifests\nwindlass manifests --check");
    fs::write(terminal.current().join("config/rbac/role.yaml"), "").expect("a file can be written");
    let stale = terminal.refused("windlass manifests --check");
    assert!(stale.contains("config/rbac/role.yaml"), "{stale}");
}

/// All files of the project and what is in them.
fn tree(terminal: &Terminal) -> String {
    terminal.ask("find . -path ./target -prune -o -type f -print0 | sort -z | xargs -0 sha256sum")
}

#[test]
fn what_cannot_be_done_is_refused_and_nothing_is_half_done() {
    let terminal = Terminal::open("refusals");
    let refused = terminal.refused("windlass create api --group a --version v1 --kind B");
    assert!(refused.contains("windlass init"), "{refused}");
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    terminal.run("windlass create api --group cache --version v1 --kind Memcached");
    let before = tree(&terminal);
    for (command, says) in [
        (
            "create api --group cache --version v1 --kind memcached",
            "CamelCase",
        ),
        (
            "create api --group cache --version 1 --kind Other",
            "v1beta1",
        ),
        (
            "create api --group Cache --version v1 --kind Other",
            "lower-case",
        ),
        (
            "create api --group cache --version v1 --kind Context",
            "MyContext",
        ),
        (
            "create api --group cache --version v1 --kind Other --plural memcacheds",
            "--plural",
        ),
        (
            "create api --group cache --version v2 --kind Memcached --namespaced=false",
            "namespaced",
        ),
        (
            "create webhook --group cache --version v1 --kind Memcached",
            "--defaulting",
        ),
        (
            "create webhook --group cache --version v1 --kind Memcached --conversion",
            "one version",
        ),
        (
            "create webhook --group cache --version v1 --kind Nothing --defaulting",
            "create api",
        ),
        (
            "create webhook --group core --version v1 --kind Pod --conversion",
            "Kubernetes",
        ),
        ("init --domain other.org", "already the project"),
    ] {
        let refused = terminal.refused(&format!("windlass {command}"));
        assert!(refused.contains(says), "windlass {command}: {refused}");
        assert_eq!(tree(&terminal), before, "windlass {command} left something");
    }
    fs::write(terminal.current().join("src/lib.rs"), "//! Mine.\n").expect("a file can be written");
    let before = tree(&terminal);
    let refused = terminal.refused("windlass create api --group cache --version v1 --kind Other");
    assert!(
        refused.contains(".controller(other::controller())"),
        "{refused}"
    );
    assert_eq!(tree(&terminal), before);
    let refused =
        terminal.refused("tool=$(command -v windlass); PATH=/nonexistent $tool manifests");
    assert!(refused.contains("rustup"), "{refused}");
}
