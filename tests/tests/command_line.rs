//! What people and programs may rely on from every command: plurals, names, JSON, colours, exit
//! codes, completions.

use std::process::Command;

use serde_json::Value;
use windlass_tests::program;
use windlass_tests::walkthrough::Terminal;

fn json(terminal: &Terminal, command: &str) -> Value {
    let printed = terminal.ask(&format!("windlass {command} -o json"));
    serde_json::from_str(&printed)
        .unwrap_or_else(|error| panic!("windlass {command} -o json: {error}: {printed}"))
}

#[test]
fn plurals_and_short_names_are_as_kubebuilder_makes_them_or_as_told() {
    let terminal = Terminal::open("plurals");
    let made = json(&terminal, "init --domain example.com my-operator");
    assert_eq!(made["name"], "my-operator");
    terminal.run("cd my-operator");
    for (kind, plural) in [
        ("Demo", "demoes"),
        ("Redis", "redis"),
        ("KvIndex", "kvindices"),
        ("Proxy", "proxies"),
        ("MySQL", "mysqls"),
        ("Person", "people"),
        ("Type", "types"),
    ] {
        let created = json(
            &terminal,
            &format!("create api --group odd --version v1 --kind {kind}"),
        );
        assert_eq!(created["plural"], plural);
        assert_eq!(created["group"], "odd.example.com");
    }
    let named = "create api --group odd.names --version v1beta2 --kind Fish --plural fishes --shortname fi --shortname fs";
    assert_eq!(json(&terminal, named)["plural"], "fishes");
    let text = terminal.ask("cat src/fish/v1beta2.rs");
    assert!(
        text.contains("shortname = \"fi\"")
            && text.contains("shortname = \"fs\"")
            && text.contains("group = \"odd.names.example.com\""),
        "{text}"
    );
    // Nothing to do is said, too.
    assert_eq!(json(&terminal, named)["files"], Value::Array(Vec::new()));
}

#[test]
fn both_spellings_of_the_webhook_command_do_the_same() {
    let spelled = |name: &str, commands: &[&str]| {
        let terminal = Terminal::open(name);
        terminal.run("windlass init --domain=kruise.io sets && cd sets");
        terminal.run("windlass create api --group apps --version v1alpha1 --kind SidecarSet --namespaced=false");
        for command in commands {
            terminal.run(&format!("windlass {command}"));
        }
        terminal.ask("find . -type f -print0 | sort -z | xargs -0 sha256sum")
    };
    let new = spelled(
        "webhook-new",
        &[
            "create webhook --group apps --version v1alpha1 --kind SidecarSet --validation",
            "create webhook --group core --version v1 --kind Pod --defaulting",
        ],
    );
    // The second flag of the first one has the long dash that stands in the seed.
    let old = spelled(
        "webhook-old",
        &[
            "alpha webhook --group apps --version v1alpha1 --kind SidecarSet --type=validating —operations=create,update",
            "alpha webhook --group core --version v1 --kind Pod --type=mutating",
        ],
    );
    assert_eq!(new, old);
}

#[test]
fn exit_codes_are_those_of_the_page() {
    let terminal = Terminal::open("exit-codes");
    for (command, code) in [
        ("windlass version", 0),
        ("windlass status", 1),
        ("windlass create api", 2),
        ("windlass nonsense", 2),
    ] {
        assert_eq!(
            terminal.output(command).status.code(),
            Some(code),
            "{command}"
        );
    }
    let page = include_str!("../../docs/commands/README.md");
    for code in ["| 0 |", "| 1 |", "| 2 |", "| 130 |"] {
        assert!(page.contains(code), "the page does not tell {code}");
    }
}

/// What a command prints on a terminal.
fn on_a_terminal(terminal: &Terminal, command: &str) -> String {
    let script = format!("script --quiet --return --command '{command}' /dev/null || true");
    terminal.ask(&script)
}

#[test]
fn colours_are_for_terminals() {
    let terminal = Terminal::open("colours");
    terminal.run("windlass init --domain example.com my-operator && cd my-operator");
    for command in [
        "windlass --help",
        "windlass status",
        "windlass create api --group a --version v1",
        "windlass create api --group a --version v1 --kind One",
        "windlass explain --nothing",
    ] {
        let output = terminal.output(command);
        for printed in [output.stdout, output.stderr] {
            assert!(!printed.contains(&0x1b), "{command} colours a pipe");
        }
    }
    let coloured = on_a_terminal(&terminal, "windlass status");
    assert!(coloured.contains("\u{1b}[1;31merror:"), "{coloured}");
    let plain = on_a_terminal(&terminal, "NO_COLOR=1 windlass status");
    assert!(!plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn what_takes_over_a_second_says_so() {
    let terminal = Terminal::open("progress");
    // Nobody answers at this address.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}],\n clusters: [{{name: a, cluster: {{server: \"https://127.0.0.1:{port}\"}}}}], users: [{{name: a, user: {{}}}}]}}\n"
    );
    std::fs::write(terminal.current().join("kubeconfig"), kubeconfig).expect("a file");
    terminal.run("windlass init --domain example.com my-operator");
    let script = "cd my-operator; KUBECONFIG=$PWD/../kubeconfig timeout -s INT 3 windlass undeploy";
    std::fs::write(terminal.current().join("ask"), script).expect("a file");
    let log = terminal.refused("bash ask");
    assert!(log.contains("asking the cluster at https://127"), "{log}");
    let seen = on_a_terminal(&terminal, "bash ask");
    assert!(
        seen.contains("asking the cluster at") && seen.contains("(2s)"),
        "{seen}"
    );
    drop(listener);
}

#[test]
fn completions_know_every_command() {
    let help = Command::new(program())
        .arg("--help")
        .output()
        .expect("windlass runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() > 15, "{help}");
    let terminal = Terminal::open("completions");
    for shell in ["bash", "zsh", "fish"] {
        let text = terminal.ask(&format!("windlass completion {shell}"));
        for command in &commands {
            assert!(text.contains(command), "{shell} does not know {command}");
        }
    }
    // What bash makes of it.
    let offered = terminal.ask(
        "windlass completion bash > completion; source completion; \
         COMP_WORDS=(windlass create ap) COMP_CWORD=2; _windlass windlass ap create; echo ${COMPREPLY[@]}",
    );
    assert_eq!(offered.trim(), "api");
}

#[test]
fn facts_are_told_as_json() {
    let terminal = Terminal::open("json");
    assert_eq!(
        json(&terminal, "version")["version"],
        env!("CARGO_PKG_VERSION")
    );
    let up = json(&terminal, "up --no-node --detach");
    let status = json(&terminal, "status");
    assert_eq!(up["address"], status["address"]);
    assert!(
        up["kubeconfig"].is_string() && up["pid"].is_number(),
        "{up}"
    );
    let down = json(&terminal, "down --purge");
    assert_eq!(down["stopped"], up["address"]);
    assert_eq!(down["removed"], ".windlass");
}
