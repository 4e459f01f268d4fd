//! Ctrl-C at any moment of what builds and deploys a project leaves nothing half-done.

use std::process::Output;
use std::time::{Duration, Instant};

use windlass_tests::inventory::{back_to, everything};
use windlass_tests::machine::Traces;
use windlass_tests::walkthrough::Terminal;

/// At how many moments a command is interrupted, from its beginning to its end.
const MOMENTS: u32 = 8;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// How long a command takes that is not interrupted.
fn takes(terminal: &Terminal, command: &str) -> Duration {
    let began = Instant::now();
    terminal.run(command);
    began.elapsed()
}

/// Either it was ended and says so, or it had done what it says.
fn is_told(command: &str, output: &Output) -> bool {
    let interrupted = output.status.code() == Some(130);
    assert!(
        interrupted || output.status.success() || output.status.code().is_none(),
        "{command} ended with {}: {}",
        output.status,
        said(output)
    );
    assert_eq!(
        interrupted,
        said(output).contains("error: interrupted: "),
        "{command}: {}",
        said(output)
    );
    output.status.success()
}

#[test]
#[ignore = "builds a project of its own: minutes the first time; `make scaffold` runs it"]
fn builds_deploys_and_undeploys_that_are_ended_leave_nothing_half_done() {
    let terminal = Terminal::open("interrupted-deploy");
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    terminal.run("windlass create api --group cache --version v1 --kind Memcached");
    terminal.run("windlass create api --group cache --version v1 --kind Redis");

    // A build: cargo ends with it, and nothing is written.
    let ended = terminal.interrupted("windlass manifests", Duration::from_secs(1));
    assert!(!is_told("windlass manifests", &ended));
    assert!(
        said(&ended).contains("the build was not finished"),
        "{}",
        said(&ended)
    );
    terminal.refused("test -e config");

    // Writing: everything or nothing.
    let whole = takes(&terminal, "windlass manifests && rm -r config dist")
        .min(takes(&terminal, "windlass manifests && rm -r config dist"));
    for step in 0..=MOMENTS {
        let moment = whole * step / MOMENTS;
        let done = is_told(
            "windlass manifests",
            &terminal.interrupted("windlass manifests", moment),
        );
        let written = terminal.output("test -e config").status.success();
        assert!(written || !done, "it said that it was done");
        if written {
            terminal.run("windlass manifests --check\nrm -r config dist");
        }
    }
    let ended = terminal.interrupted("windlass image build", whole / 3);
    if !is_told("windlass image build", &ended) {
        terminal.refused("test -e dist/my-operator.tar || test -e dist/my-operator.tar.new");
    }

    terminal.run("windlass up --no-node --detach\nexport KUBECONFIG=$PWD/.windlass/kubeconfig");
    let before = everything(&terminal);
    let deploy = "windlass deploy --no-wait";
    let whole = takes(&terminal, deploy);
    terminal.run("windlass undeploy");
    back_to(&terminal, &before);
    let (mut nothing, mut deployed) = (0, 0);
    for step in 0..=MOMENTS {
        let moment = whole * step / MOMENTS;
        if is_told(deploy, &terminal.interrupted(deploy, moment)) {
            deployed += 1;
            terminal.run("windlass undeploy");
        } else {
            nothing += 1;
        }
        back_to(&terminal, &before);
    }
    println!("{deploy}: nothing {nothing} times, everything {deployed} times");
    assert!(nothing > 1);

    // What undeploy was kept from is removed the next time.
    terminal.run(deploy);
    let whole = takes(&terminal, "windlass undeploy");
    let mut ended = 0;
    for step in 0..MOMENTS {
        terminal.run(deploy);
        let moment = whole * step / MOMENTS;
        let output = terminal.interrupted("windlass undeploy", moment);
        if !is_told("windlass undeploy", &output) {
            ended += 1;
        }
        terminal.run("windlass undeploy");
        back_to(&terminal, &before);
    }
    println!("windlass undeploy: ended {ended} times, and finished by the next");
}

#[test]
#[ignore = "builds a project of its own: minutes the first time; `make scaffold` runs it"]
fn a_run_that_is_ended_leaves_no_cluster_behind() {
    let terminal = Terminal::open("interrupted-run");
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    terminal.run("windlass create api --group cache --version v1 --kind Memcached");
    terminal.run("cargo build --quiet\nmkdir tmp\nexport TMPDIR=$PWD/tmp");
    let traces = || {
        let now = Traces::now(&terminal.current());
        (now.processes, now.interfaces, now.rules, now.mounts)
    };
    let before = traces();
    let command = "windlass run --embedded";
    let (mut early, mut ran) = (0, 0);
    for step in 0..=MOMENTS {
        let moment = Duration::from_millis(200) * step;
        let began = Instant::now();
        let output = terminal.interrupted(command, moment);
        println!("{moment:?}: {} after {:?}", output.status, began.elapsed());
        if is_told(command, &output) {
            ran += 1;
        } else {
            early += 1;
        }
        assert_eq!(terminal.ask("ls -A tmp"), "", "after {moment:?}");
        assert_eq!(traces(), before, "after {moment:?}");
    }
    println!("{command}: ended {early} times before it ran, and {ran} times after");
    assert!(early > 0 && ran > 0);
}
