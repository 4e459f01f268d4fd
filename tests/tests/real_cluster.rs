//! The command line on the real control plane: deploy and undeploy, and an operator that runs here
//! with webhooks that the real kube-apiserver calls. The same on the embedded cluster beside it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use windlass_tests::inventory::{back_to, everything};
use windlass_tests::walkthrough::{Terminal, root};

/// A real control plane of the test's own, on the test's own network.
struct Real {
    folder: std::path::PathBuf,
}

impl Real {
    fn start(terminal: &Terminal) -> Self {
        let folder = terminal.current().join("../real");
        let real = Self { folder };
        let kubeconfig = real.script("start");
        terminal.run(&format!("export KUBECONFIG={}", kubeconfig.trim()));
        real
    }

    fn script(&self, what: &str) -> String {
        let output = Command::new(root().join("scripts/real-control-plane"))
            .arg(what)
            .env("REAL_DIR", &self.folder)
            .output()
            .expect("the script runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.script("stop");
    }
}

/// A webhook fills in and refuses, called by the API server of the current kubeconfig.
fn webhooks_answer(terminal: &Terminal, whose: &str) {
    let label = "{\"example.com/checked-by\":\"my-operator\"}";
    terminal.until("kubectl get validatingwebhookconfigurations -o name | grep -q my-operator");
    terminal.until("kubectl apply -f config/samples/");
    terminal.run("kubectl wait --for=condition=Available mc --all --timeout=60s");
    let found = terminal.ask("kubectl get mc memcached-sample -o jsonpath='{.metadata.labels}'");
    assert_eq!(found, label, "{whose}");
    let long = "long".repeat(20);
    let refused = terminal.refused(&format!(
        "sed 's/name: memcached-sample/name: {long}/' config/samples/*memcached.yaml | kubectl create -f -"
    ));
    assert!(refused.contains("must be no more than 52"), "{refused}");
    println!("webhooks answer the {whose} API server");
}

#[test]
#[ignore = "builds a project and needs the real control plane: `make scaffold` runs it"]
fn deploy_undeploy_and_run_on_the_real_control_plane() {
    assert!(
        Path::new(&root().join(".real/bin/kube-apiserver")).exists(),
        "build the real control plane first: make real-control-plane"
    );
    let mut terminal = Terminal::open("real");
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    terminal.run("windlass create api --group cache --version v1 --kind Memcached --shortname mc");
    terminal.run(
        "windlass create webhook --group cache --version v1 --kind Memcached --defaulting --validation",
    );
    terminal.run("windlass manifests");

    // On a throw-away cluster.
    terminal.start("windlass run --embedded --kubeconfig-out kubeconfig");
    terminal.until("test -e kubeconfig");
    terminal.run("export KUBECONFIG=$PWD/kubeconfig");
    webhooks_answer(&terminal, "embedded");
    terminal.interrupt();

    let real = Real::start(&terminal);
    let before = everything(&terminal);
    // Nobody runs pods here, so there is nothing to wait for.
    let deployed: Value =
        serde_json::from_str(&terminal.ask("windlass deploy --no-wait -o json")).expect("JSON");
    let objects = deployed["objects"].as_array().expect("objects");
    assert_eq!(
        deployed["new"].as_array().map(Vec::len),
        Some(objects.len())
    );
    let during = everything(&terminal);
    terminal.until("kubectl -n my-operator-system get pods -o name | grep -q my-operator");
    println!(
        "the real control plane took {} objects: {} before, {} with them",
        objects.len(),
        before.len(),
        during.len()
    );
    terminal.run("windlass undeploy");
    back_to(&terminal, &before);
    println!("undeploy left what was there before, and nothing else");

    // A cluster that is not ours, with the operator on this machine.
    terminal.run("windlass install");
    terminal.start("windlass run");
    webhooks_answer(&terminal, "real");
    terminal.interrupt();
    drop(real);
}
