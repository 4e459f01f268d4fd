//! What cannot be done is refused in one clear sentence that says what would help, and nothing is
//! left half-done.

use std::fs;
use std::time::{Duration, Instant};

use windlass_tests::walkthrough::Terminal;

/// All files of the folder and what is in them.
fn tree(terminal: &Terminal) -> String {
    terminal.ask("find . -type f -print0 | sort -z | xargs -0 -r sha256sum")
}

fn project(name: &str) -> Terminal {
    let terminal = Terminal::open(name);
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    terminal
}

/// Every command has to fail, say so, and change nothing.
fn all_refused(terminal: &Terminal, refused: &[(&str, &str)]) {
    let before = tree(terminal);
    for (command, says) in refused {
        let message = terminal.refused(&format!("windlass {command}"));
        assert!(message.contains(says), "windlass {command}: {message}");
        assert!(
            message.starts_with("error: "),
            "windlass {command}: {message}"
        );
        assert_eq!(tree(terminal), before, "windlass {command} left something");
    }
}

#[test]
fn odd_names_and_clashes() {
    let terminal = project("refused-names");
    terminal.run("windlass create api --group cache --version v1 --kind Memcached --shortname mc");
    all_refused(
        &terminal,
        &[
            (
                "create api --group cache --version v1 --kind memcached",
                "CamelCase",
            ),
            (
                "create api --group cache --version v1 --kind Mem-Cached",
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
                "create api --group cache --version v1 --kind Other --shortname mc",
                "cache.example.com/v1 Memcached has the name mc already",
            ),
            (
                "create api --group cache --version v1 --kind MemCached --plural others",
                "choose another kind",
            ),
            (
                "create api --group cache --version v2 --kind Memcached --shortname mem",
                "all versions of Memcached share its short names",
            ),
            (
                "create api --group cache --version v1 --kind Other --shortname Oth",
                "short name",
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
            ("init --domain Example.org ../new", "lower-case"),
            ("init --domain example.com --name 9lives ../new", "letter"),
            (
                "init --domain example.com --name serde ../new",
                "that of a crate",
            ),
            ("init --domain example.com ../123", "--name"),
        ],
    );
    assert!(!terminal.current().join("../new").exists());
}

#[test]
fn files_that_a_person_wrote() {
    let terminal = project("refused-files");
    fs::write(terminal.current().join("src/lib.rs"), "//! Mine.\n").expect("a file can be written");
    all_refused(
        &terminal,
        &[(
            "create api --group cache --version v1 --kind Other",
            ".controller(other::controller())",
        )],
    );
    // A file of the name of one that would be written is shown beside it.
    let terminal = project("refused-conflict");
    fs::write(terminal.current().join("tests/other.rs"), "// Mine.\n").expect("a file");
    all_refused(
        &terminal,
        &[(
            "create api --group cache --version v1 --kind Other",
            "-// Mine.\n+//! Others in a cluster of their own",
        )],
    );
    terminal.run("mkdir ../mine && echo mine > ../mine/Makefile && cd ../mine");
    all_refused(&terminal, &[("init --domain example.com", "-mine\n")]);
}

#[test]
fn wrong_folders() {
    let terminal = Terminal::open("refused-folders");
    terminal.run("mkdir empty && cd empty");
    let elsewhere: Vec<(&str, &str)> = [
        "create api --group a --version v1 --kind B",
        "create webhook --group core --version v1 --kind Pod --defaulting",
        "alpha webhook --group core --version v1 --kind Pod --type=mutating",
        "manifests",
        "explain",
        "image build",
        "undeploy",
    ]
    .into_iter()
    .map(|command| (command, "windlass init"))
    .collect();
    all_refused(&terminal, &elsewhere);
    terminal.run("touch file");
    all_refused(
        &terminal,
        &[
            ("init --domain example.com file", "is a file"),
            ("image load nothing.tar", "windlass up"),
            ("status", "windlass up"),
            (
                "init --domain example.com --windlass-path . new",
                "not a checkout",
            ),
        ],
    );
    terminal.run("echo 'layout: other/v9\ndomain: a\nprojectName: b' > PROJECT");
    all_refused(
        &terminal,
        &[("create api --group a --version v1 --kind B", "windlass/v1")],
    );
    // A folder inside a project belongs to it.
    terminal.run("cd .. && windlass init --domain example.com my-operator && cd my-operator/src");
    terminal.run("windlass create api --group a --version v1 --kind Inner && test -e inner.rs");
}

#[test]
fn a_folder_that_may_not_be_written_to() {
    let terminal = project("refused-read-only");
    // Root may write anywhere but where nobody can.
    terminal.run("mkdir ../full && ln -s /proc/self/nothing ../full/src");
    let before = terminal.ask("ls -A ../full");
    let message = terminal.refused("windlass init --domain example.com --name full ../full");
    assert!(message.contains("cannot use"), "{message}");
    assert_eq!(terminal.ask("ls -A ../full"), before);
}

#[test]
fn no_toolchain() {
    let terminal = project("refused-toolchain");
    // Scaffolding does without, everything that compiles says what is missing.
    let alone = "tool=$(command -v windlass); PATH=/nonexistent $tool";
    terminal.run(&format!(
        "{alone} create api --group cache --version v1 --kind Memcached"
    ));
    for command in ["manifests", "explain", "image build", "run --embedded"] {
        let message = terminal.refused(&format!("{alone} {command}"));
        assert!(message.contains("https://rustup.rs"), "{message}");
    }
}

#[test]
fn a_cluster_that_cannot_be_reached() {
    let terminal = project("refused-cluster");
    fs::write(
        terminal.current().join("kubeconfig"),
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],\n clusters: [{name: a, cluster: {server: \"https://127.0.0.1:9\"}}], users: [{name: a, user: {}}]}\n",
    )
    .expect("a file can be written");
    let began = Instant::now();
    for command in ["install", "uninstall", "run", "deploy", "undeploy"] {
        let message = terminal.refused(&format!("KUBECONFIG=$PWD/kubeconfig windlass {command}"));
        assert!(
            message.contains("cannot reach the cluster at https://127.0.0.1:9")
                && message.to_lowercase().contains("connection refused")
                && message.contains("windlass up"),
            "windlass {command}: {message}"
        );
        assert_eq!(message.lines().count(), 1, "windlass {command}: {message}");
        let message = terminal.refused(&format!("HOME=/nonexistent windlass {command}"));
        assert!(
            message.contains("no cluster is chosen") && message.contains("windlass up"),
            "windlass {command}: {message}"
        );
    }
    // It is said before anything is built.
    assert!(began.elapsed() < Duration::from_secs(30));
}
