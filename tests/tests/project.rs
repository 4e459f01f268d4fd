//! A scaffolded project in use: the clock from nothing to the first reconcile, what an edit
//! rebuilds, definitions that would break, its CI, and its life as an image in a cluster.

use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_tests::inventory::{back_to, everything};
use windlass_tests::walkthrough::Terminal;

/// How long a new user may wait for the first reconcile.
const MINUTE: Duration = Duration::from_mins(1);

fn json(terminal: &Terminal, command: &str) -> Value {
    let printed = terminal.ask(command);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{command}: {error}: {printed}"))
}

/// A project with one kind, `cache.example.com/v1 Memcached`.
fn project(name: &str) -> Terminal {
    let terminal = Terminal::open(name);
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    terminal.run("windlass create api --group cache --version v1 --kind Memcached --shortname mc");
    terminal
}

/// What Cargo had to compile anew, by package.
fn compiled(terminal: &Terminal, command: &str) -> Vec<String> {
    let messages = terminal.ask(&format!("{command} --message-format=json 2>/dev/null"));
    let mut packages: Vec<String> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact" && message["fresh"] == false)
        .filter_map(|message| Some(message["target"]["name"].as_str()?.to_owned()))
        .collect();
    packages.sort();
    packages.dedup();
    packages
}

#[test]
#[ignore = "builds a project of its own, from nothing: minutes; `make scaffold` runs it"]
fn the_first_kind_is_reconciled_within_a_minute_and_an_edit_rebuilds_one_crate() {
    // The dependencies are compiled by then: another project of this machine has used them.
    let other = Terminal::open("clock-other");
    other.run("windlass init --domain example.com other-operator\ncd other-operator");
    other.run("cargo build --quiet");
    drop(other);

    let mut terminal = Terminal::open("clock");
    let began = Instant::now();
    let lap = |what: &str| println!("{:6.1} s  {what}", began.elapsed().as_secs_f64());
    terminal.run("windlass init --domain example.com my-operator\ncd my-operator");
    lap("windlass init");
    terminal.run("windlass create api --group cache --version v1 --kind Memcached --shortname mc");
    lap("windlass create api");
    terminal.run("windlass manifests");
    lap("windlass manifests (builds the operator)");
    terminal.start("windlass run --embedded --kubeconfig-out kubeconfig");
    terminal.until("test -e kubeconfig");
    terminal.run("export KUBECONFIG=$PWD/kubeconfig");
    terminal.until("kubectl get crd memcacheds.cache.example.com");
    lap("windlass run --embedded: the kind is there");
    terminal.until("kubectl apply -f config/samples/");
    terminal.run("kubectl wait --for=condition=Available mc --all --timeout=60s");
    let took = began.elapsed();
    lap("the first object is reconciled");
    assert_eq!(
        terminal.ask("kubectl get configmap memcached-sample -o jsonpath='{.data.message}'"),
        "hello"
    );
    println!(
        "from `windlass init` to the first reconcile: {:.1} s",
        took.as_secs_f64()
    );
    assert!(took < MINUTE, "{took:?}");
    // Ctrl-C ends the operator, the cluster, and everything it wrote.
    let folder =
        terminal.ask("kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}'");
    terminal.interrupt();
    terminal.refused(&format!("curl -sk --max-time 2 {folder}/readyz"));

    terminal
        .run("sed -i 's/\"message\".to_owned()/\"text\".to_owned()/' src/memcached/controller.rs");
    let edited = Instant::now();
    let rebuilt = compiled(&terminal, "cargo build");
    println!(
        "an edit of the reconciler compiled {rebuilt:?} in {:.1} s",
        edited.elapsed().as_secs_f64()
    );
    assert_eq!(rebuilt, ["my-operator", "my_operator"]);
}

#[test]
#[ignore = "builds a project of its own, from nothing: minutes; `make scaffold` runs it"]
fn breaking_definitions_and_stale_manifests_are_refused() {
    let terminal = project("breaking");
    terminal.run("windlass up --no-node --detach\nexport KUBECONFIG=$PWD/.windlass/kubeconfig");
    let installed = json(&terminal, "windlass install -o json");
    assert_eq!(
        installed["done"][0],
        "installed memcacheds.cache.example.com"
    );
    // Short names reach kubectl.
    terminal.until("kubectl get mc");
    terminal.run("windlass manifests && windlass manifests --check");
    let explained = json(&terminal, "windlass explain -o json");
    assert_eq!(
        explained["defines"][0]["name"],
        "memcacheds.cache.example.com"
    );
    assert!(
        explained["controllers"][0]["rules"].is_array(),
        "{explained}"
    );

    let check = terminal.ci().pop().expect("CI has lines");
    assert!(check.ends_with("manifests --check"), "{check}");
    terminal.run(&check);
    terminal.run(
        "sed -i 's/    pub message: String,/    pub message: i64,/' src/memcached/v1.rs
        sed -i 's/message: \"hello\".to_owned()/message: 7/' src/memcached.rs
        sed -i 's/spec.message.clone()/spec.message.to_string()/' src/memcached/controller.rs",
    );
    let stale = terminal.refused(&check);
    assert!(
        stale.contains("changed  config/crd/bases/cache.example.com_memcacheds.yaml")
            && stale.contains("changed  dist/install.yaml"),
        "{stale}"
    );
    for command in ["windlass install", "windlass deploy --no-wait"] {
        let refused = terminal.refused(command);
        assert!(
            refused.contains("v1 .spec.message") && refused.contains("nothing was changed"),
            "{command}: {refused}"
        );
    }
    let kept = "kubectl get crd memcacheds.cache.example.com -o jsonpath='{.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.message.type}'";
    assert_eq!(terminal.ask(kept), "string");
    terminal.run("windlass install --force");
    assert_eq!(terminal.ask(kept), "integer");
    let removed = json(&terminal, "windlass uninstall -o json");
    assert_eq!(removed["removed"][0], "memcacheds.cache.example.com");
}

#[test]
#[ignore = "builds a project of its own, from nothing: minutes; `make scaffold` runs it"]
fn an_image_runs_as_a_pod_with_its_webhooks_and_undeploy_takes_back_what_deploy_made() {
    if !windlass_tests::machine::is_root() {
        windlass_skip::skip("images need sandboxes, which need root");
        return;
    }
    let terminal = project("image");
    terminal.run(
        "windlass create webhook --group cache --version v1 --kind Memcached --defaulting --validation",
    );
    terminal.run("windlass up --detach\nexport KUBECONFIG=$PWD/.windlass/kubeconfig");
    let before = everything(&terminal);
    println!("{} objects before", before.len());

    // Without its image it does not run, and that is said soon.
    let refused = terminal.refused("windlass deploy --image my-operator:1.0.0");
    assert!(
        refused.contains("Image") && refused.contains("windlass image load"),
        "{refused}"
    );
    terminal.run("windlass undeploy");
    back_to(&terminal, &before);

    let built = json(
        &terminal,
        "windlass image build --tag my-operator:1.0.0 --output json",
    );
    let again = json(
        &terminal,
        "windlass image build --tag my-operator:1.0.0 --output json",
    );
    assert_eq!(built, again, "the same program gives the same image");
    terminal.run("windlass image load dist/my-operator.tar");
    terminal.run("windlass manifests");
    terminal.run("windlass deploy --image my-operator:1.0.0");
    let during = everything(&terminal);
    println!("{} objects deployed", during.len());
    let image = terminal.ask(
        "kubectl -n my-operator-system get pods -o jsonpath='{.items[0].status.containerStatuses[0].imageID}'",
    );
    assert_eq!(
        image,
        format!(
            "my-operator:1.0.0@{}",
            built["digest"].as_str().expect("a digest")
        )
    );
    // What runs is the image's root, with nothing of the machine's, as the image's user.
    let pid = terminal.ask("pgrep -x my-operator | head -1");
    let pid = pid.trim();
    let root = terminal.ask(&format!("ls /proc/{pid}/root"));
    assert!(
        root.contains("my-operator") && !root.contains("home"),
        "{root}"
    );
    let user = terminal.ask(&format!("grep ^Uid: /proc/{pid}/status"));
    assert!(user.contains("65532"), "{user}");

    terminal.until("kubectl apply -f config/samples/");
    terminal.run("kubectl wait --for=condition=Available mc --all --timeout=60s");
    let label = "kubectl get mc memcached-sample -o jsonpath='{.metadata.labels}'";
    assert_eq!(
        terminal.ask(label),
        "{\"example.com/checked-by\":\"my-operator\"}"
    );
    let long = "long".repeat(20);
    let refused = terminal.refused(&format!(
        "kubectl get mc memcached-sample -o yaml | sed 's/name: memcached-sample/name: {long}/; /uid:/d; /resourceVersion:/d' | kubectl create -f -"
    ));
    assert!(refused.contains("must be no more than 52"), "{refused}");

    // Again changes nothing, and a namespace that somebody else uses stays.
    let again = json(
        &terminal,
        "windlass deploy --image my-operator:1.0.0 -o json",
    );
    assert_eq!(again["new"], Value::Array(Vec::new()));
    terminal.run("kubectl -n my-operator-system create configmap mine");
    let taken = json(&terminal, "windlass undeploy -o json");
    assert_eq!(taken["left"][0]["object"], "namespace my-operator-system");
    terminal.run("kubectl -n my-operator-system get configmap mine");
    terminal.run("kubectl -n my-operator-system delete configmap mine");
    terminal.run("windlass undeploy");
    back_to(&terminal, &before);
    println!("{} objects after undeploy", everything(&terminal).len());

    // What was there before deploy is not deploy's to remove.
    terminal.run("windlass install");
    let installed = everything(&terminal);
    terminal.run("windlass deploy --image my-operator:1.0.0 && windlass undeploy");
    back_to(&terminal, &installed);
    terminal.run("kubectl get crd memcacheds.cache.example.com");
}
