//! A scaffolded project is formatted, compiles without a warning, passes clippy and its own tests,
//! after each step a person may take. Each test plays the steps up to its own, which takes no time,
//! and then has Cargo look at the project; `cargo test --test scaffold NAME` runs one alone.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use windlass_tests::walkthrough::Terminal;

/// What has to hold after each step.
const CHECKS: [&str; 3] = [
    "cargo fmt --check",
    "cargo clippy --quiet --all-targets -- -D warnings",
    "cargo test --quiet",
];

/// One project after the other, in the same place: Cargo compiles only what a step has changed.
static PLACE: Mutex<()> = Mutex::new(());

/// The steps, each on top of those before it.
const STEPS: [(&str, &[&str]); 8] = [
    (
        "init",
        &["windlass init --domain example.com my-operator; cd my-operator"],
    ),
    (
        "one kind",
        &["windlass create api --group cache --version v1 --kind Memcached --shortname mc"],
    ),
    (
        "two kinds",
        &["windlass create api --group cache --version v1alpha1 --kind RedisFailover"],
    ),
    (
        "a cluster-scoped kind",
        &[
            "windlass create api --group apps --version v1alpha1 --kind SidecarSet --namespaced=false",
        ],
    ),
    (
        "a second version",
        &["windlass create api --group cache --version v2 --kind Memcached"],
    ),
    (
        "webhooks of its own kinds",
        &[
            "windlass create webhook --group cache --version v1 --kind Memcached --defaulting --validation",
            "windlass alpha webhook --group apps --version v1alpha1 --kind SidecarSet --type=mutating --operations=create",
            "windlass alpha webhook --group apps --version v1alpha1 --kind SidecarSet --type=validating --operations=create,update",
        ],
    ),
    (
        "a webhook of Pods",
        &["windlass create webhook --group core --version v1 --kind Pod --defaulting"],
    ),
    (
        "a kind of the same name in another group",
        &["windlass create api --group other --version v1 --kind Memcached"],
    ),
];

/// Plays the steps up to one, and looks at the project.
fn works_after(last: &str, also: impl FnOnce(&Terminal)) {
    let _alone = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = STEPS.iter().position(|(name, _)| *name == last);
    let place = place.expect("one of the steps");
    let terminal = Terminal::open("scaffold");
    for (_, commands) in &STEPS[..=place] {
        for command in *commands {
            terminal.run(&format!("{{ {command}; }} >/dev/null"));
        }
    }
    println!("after {last}:");
    for check in CHECKS {
        let began = Instant::now();
        terminal.run(check);
        println!("{:7.1} s  {check}", began.elapsed().as_secs_f64());
    }
    // Again changes nothing.
    let before = tree(&terminal);
    for command in STEPS[place].1 {
        let command = command.split(';').next().unwrap_or_default();
        let folder = if place == 0 { ".." } else { "." };
        terminal.ask(&format!("cd {folder}; {command}"));
        assert_eq!(tree(&terminal), before, "{command}, again");
    }
    also(&terminal);
}

/// All files of the project and what is in them.
fn tree(terminal: &Terminal) -> String {
    // What was added to the lock file says nothing about the command.
    terminal.ask("find . -type f ! -name Cargo.lock -print0 | sort -z | xargs -0 sha256sum")
}

/// The steps that need nothing but Cargo.
macro_rules! steps {
    ($($test:ident: $step:literal,)*) => {
        $(
            #[test]
            #[ignore = "builds a project of its own: minutes the first time; `make scaffold` runs it"]
            fn $test() {
                works_after($step, |_| {});
            }
        )*
    };
}

steps! {
    a_new_project_works: "init",
    one_kind_works: "one kind",
    two_kinds_work: "two kinds",
    a_cluster_scoped_kind_works: "a cluster-scoped kind",
    a_second_version_works: "a second version",
    webhooks_of_its_own_kinds_work: "webhooks of its own kinds",
    a_webhook_of_pods_works: "a webhook of Pods",
}

#[test]
#[ignore = "builds a project of its own: minutes the first time; `make scaffold` runs it"]
fn several_groups_work_and_ci_fails_on_stale_manifests() {
    works_after("a kind of the same name in another group", |terminal| {
        terminal.run("windlass manifests\nwindlass manifests --check");
        // What CI would do with it.
        let ci = terminal.ci();
        assert_eq!(ci.len(), 4, "{ci:?}");
        for command in ci {
            terminal.run(&command);
        }
        fs::write(terminal.current().join("config/rbac/role.yaml"), "").expect("a file");
        let stale = terminal.refused("windlass manifests --check");
        assert!(stale.contains("config/rbac/role.yaml"), "{stale}");
    });
}

#[test]
#[ignore = "builds a project of its own: minutes the first time; `make scaffold` runs it"]
fn kinds_and_groups_with_odd_names_work() {
    let _alone = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    let terminal = Terminal::open("scaffold-odd");
    terminal.run("windlass init --domain example.com my-operator >/dev/null; cd my-operator");
    // Words of Rust, names of modules, of variables and of other kinds, and hardly any name at all.
    for kind in [
        "Type", "Main", "Cluster", "Message", "Test", "A", "R2D2", "MySQL", "Status", "Pod",
    ] {
        let command =
            format!("windlass create api --group odd.na-mes --version v1beta2 --kind {kind}");
        terminal.run(&format!("{command} >/dev/null"));
    }
    terminal.run(
        "windlass create api --group '' --version v1 --kind Create --namespaced=false --plural creation >/dev/null
        windlass create webhook --group odd.na-mes --version v1beta2 --kind Cluster --defaulting --validation >/dev/null
        windlass create api --group odd.na-mes --version v1 --kind Type >/dev/null",
    );
    let began = Instant::now();
    // Compiling is what a name could be in the way of.
    terminal.run(&CHECKS[..2].join("\n"));
    println!("{:7.1} s  eleven odd kinds", began.elapsed().as_secs_f64());
    terminal.run("windlass manifests >/dev/null");
    let plurals = terminal.ask("ls config/crd/bases");
    for file in [
        "example.com_creation.yaml",
        "odd.na-mes.example.com_types.yaml",
    ] {
        assert!(plurals.lines().any(|line| line == file), "{plurals}");
    }
}

#[test]
#[ignore = "builds a project of its own: minutes the first time; `make scaffold` runs it"]
fn a_member_of_a_workspace_works() {
    let _alone = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    let terminal = Terminal::open("scaffold-member");
    terminal.run(
        r#"cat > Cargo.toml <<'END'
[workspace]
resolver = "3"
members = ["operators/*"]

# As in a project that stands alone: its dependencies are compiled.
[profile.dev.package."*"]
debug = false
opt-level = 1
END
        cp $WINDLASS_PATH/Cargo.lock . && mkdir operators && cd operators
        windlass init --domain example.com one >/dev/null && cd one
        windlass create api --group cache --version v1 --kind Memcached >/dev/null"#,
    );
    let output = terminal.output("cargo check --all-targets");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && !said.contains("warning"),
        "{said}"
    );
}
