//! A project of Helm charts from `init` to a cluster, and Helm itself on the releases it makes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use windlass_tests::{Folder, Signal, eventually, interruptible, program, signal};

fn chart() -> String {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/web-chart");
    chart.display().to_string()
}

/// The Helm that `scripts/helm` fetched, if it did.
fn helm() -> Option<PathBuf> {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.real/bin/helm");
    std::env::var_os("HELM")
        .map(PathBuf::from)
        .or(Some(fetched))
        .filter(|path| path.is_file())
}

/// A project of the chart, and a cluster without a node.
struct Project {
    folder: Folder,
    root: PathBuf,
    operator: Option<Child>,
}

impl Project {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let chart = chart();
        folder.windlass_ok(&[
            "init",
            "--plugins=helm",
            "--domain",
            "example.com",
            "--group",
            "apps",
            "--version",
            "v1",
            "--kind",
            "Web",
            "--helm-chart",
            &chart,
            "webs",
        ]);
        let root = folder.path().join("webs");
        Self {
            folder,
            root,
            operator: None,
        }
    }

    fn up(&mut self) {
        self.folder.windlass_ok(&[
            "up",
            "--no-node",
            "--in-memory",
            "--detach",
            "--listen",
            "127.0.0.1:0",
        ]);
        self.run(&["install"]);
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join(".windlass/kubeconfig")
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> String {
        let shown = format!("{} {}", program.as_ref().to_string_lossy(), args.join(" "));
        let output = Command::new(program)
            .args(args)
            .current_dir(&self.root)
            .env("KUBECONFIG", self.kubeconfig())
            .env("HELM_CACHE_HOME", self.folder.path().join("helm"))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{shown}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    fn run(&self, args: &[&str]) -> String {
        self.command(program(), args)
    }

    /// Runs the operator as operator-sdk's projects do.
    fn start(&mut self) {
        let mut command = interruptible(program());
        let operator = command
            .args([
                "helm-operator",
                "run",
                "--watches-file=./watches.yaml",
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
            ])
            .current_dir(&self.root)
            .env("KUBECONFIG", self.kubeconfig())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.operator = Some(operator);
    }

    fn stop(&mut self) {
        if let Some(mut operator) = self.operator.take() {
            signal(operator.id().try_into().unwrap(), Signal::TERM);
            operator.wait().unwrap();
        }
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.folder.kubectl(args)).unwrap()
    }

    /// Waits until the custom resource has this condition.
    fn deployed(&self, reason: &str) {
        let what = format!("Deployed with {reason}");
        eventually(&what, || {
            let web = self.json(&["get", "web", "shop", "-o", "json"]);
            let conditions = web["status"]["conditions"].as_array()?;
            let is = |one: &&Value| one["type"] == "Deployed" && one["reason"] == reason;
            conditions.iter().find(is).map(|_| ())
        });
    }

    fn apply(&self, spec: &Value) {
        let web = serde_json::json!({
            "apiVersion": "apps.example.com/v1",
            "kind": "Web",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": spec,
        });
        let path = self.folder.path().join("web.json");
        std::fs::write(&path, web.to_string()).unwrap();
        self.folder
            .kubectl(&["apply", "-f", path.to_str().unwrap()]);
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn project_of_chart_has_schema_role_and_sample_and_they_stay_current() {
    let project = Project::new("helm-project");
    project.run(&["manifests"]);
    let read = |path: &str| {
        let path = project.root.join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let crd = read("config/crd/bases/apps.example.com_webs.yaml");
    for wanted in [
        "How many pods serve the pages.",
        "x-kubernetes-preserve-unknown-fields",
        "deployedRelease",
    ] {
        assert!(crd.contains(wanted), "{wanted} in {crd}");
    }
    let role = read("config/rbac/role.yaml");
    assert!(
        role.contains("ingresses") && role.contains("jobs"),
        "{role}"
    );
    assert!(read("config/samples/apps_v1_web.yaml").contains("replicas: 1"));
    assert!(read("watches.yaml").contains("chart: helm-charts/web"));
    project.run(&["manifests", "--check"]);
    let explained = project.run(&["explain"]);
    assert!(explained.contains("webs.apps.example.com"), "{explained}");
}

#[test]
fn helm_lists_shows_rolls_back_and_uninstalls_what_the_operator_made() {
    let Some(helm) = helm() else {
        windlass_skip::skip("there is no Helm: run scripts/helm");
        return;
    };
    let mut project = Project::new("helm-release");
    project.up();
    project.start();
    project.apply(&serde_json::json!({"page": "One"}));
    project.deployed("InstallSuccessful");
    project.apply(&serde_json::json!({"page": "Two"}));
    project.deployed("UpgradeSuccessful");
    // From here on Helm is alone.
    project.stop();

    let helm = |args: &[&str]| project.command(&helm, args);
    let list: Value = serde_json::from_str(&helm(&["list", "-o", "json"])).unwrap();
    assert_eq!(list[0]["name"], "shop");
    assert_eq!(list[0]["revision"], "2");
    assert_eq!(list[0]["chart"], "web-1.0.0");
    assert_eq!(list[0]["app_version"], "1.29");
    assert_eq!(list[0]["status"], "deployed");
    let history: Value = serde_json::from_str(&helm(&["history", "shop", "-o", "json"])).unwrap();
    let statuses: Vec<&str> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["superseded", "deployed"]);
    assert!(helm(&["get", "values", "shop"]).contains("page: Two"));
    assert!(helm(&["get", "manifest", "shop"]).contains("# Source: web/templates/service.yaml"));
    assert_eq!(
        helm(&["get", "notes", "shop"]).trim(),
        "NOTES:\nshop serves Two."
    );
    helm(&["rollback", "shop", "1"]);
    let map = project.json(&["get", "configmap", "shop", "-o", "json"]);
    assert_eq!(map["data"]["index.html"], "One");

    // What the custom resource says wins over that.
    project.start();
    eventually("the page of the custom resource", || {
        let map = project.json(&["get", "configmap", "shop", "-o", "json"]);
        (map["data"]["index.html"] == "Two").then_some(())
    });
    project.stop();
    let helm_path = self::helm().unwrap();
    project.command(&helm_path, &["uninstall", "shop"]);
    let left = project.folder.run_kubectl(&["get", "service", "shop"]);
    assert!(!left.status.success());
}

#[test]
fn release_that_helm_made_is_taken_over() {
    let Some(helm) = helm() else {
        windlass_skip::skip("there is no Helm: run scripts/helm");
        return;
    };
    let mut project = Project::new("helm-taken-over");
    project.up();
    project.command(&helm, &["install", "shop", &chart(), "--set", "page=One"]);
    let before = project.json(&["get", "deployment", "shop", "-o", "json"]);
    project.start();
    project.apply(&serde_json::json!({"page": "One"}));
    eventually("the owner reference", || {
        let deployment = project.json(&["get", "deployment", "shop", "-o", "json"]);
        let owner = &deployment["metadata"]["ownerReferences"][0]["kind"];
        (owner == "Web").then_some(())
    });
    let after = project.json(&["get", "deployment", "shop", "-o", "json"]);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(
        after["metadata"]["generation"],
        before["metadata"]["generation"]
    );
}
