//! A scaffolded project is formatted, compiles without a warning, passes clippy and its own tests,
//! after each step a person may take.

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
    // What CI would do with it.
    let ci = terminal.ci();
    assert_eq!(ci.len(), 4, "{ci:?}");
    for command in ci {
        terminal.run(&command);
    }
    fs::write(terminal.current().join("config/rbac/role.yaml"), "").expect("a file can be written");
    let stale = terminal.refused("windlass manifests --check");
    assert!(stale.contains("config/rbac/role.yaml"), "{stale}");
}

/// All files of the project and what is in them.
fn tree(terminal: &Terminal) -> String {
    // What was added to the lock file says nothing about the command.
    terminal.ask("find . -type f ! -name Cargo.lock -print0 | sort -z | xargs -0 sha256sum")
}
