//! Dependencies point one way, up the table of the architecture.
//!
//! The table below is that table; `cargo metadata` says what the manifests really declare,
//! dev-dependencies included. A crate that is not in the table fails too, so that a new room
//! is placed in the house on purpose.

use std::process::Command;

use serde_json::Value;

/// What the crates of one row may depend on.
struct Row {
    /// The crate, or the folder (ending in `/`) whose crates share the row.
    crates: &'static str,
    /// Crates of this workspace it may depend on.
    may: &'static [&'static str],
    /// Crates of this workspace that only its tests may depend on.
    tests_may: &'static [&'static str],
    /// Whether it may depend on kube's client; the rows without it know kube-core at most.
    client: bool,
    /// Whether it is (also) a program, and so chooses the Kubernetes version of k8s-openapi.
    program: bool,
}

impl Row {
    const fn of(crates: &'static str) -> Self {
        Self {
            crates,
            may: &[],
            tests_may: &[],
            client: false,
            program: false,
        }
    }

    const fn may(mut self, may: &'static [&'static str]) -> Self {
        self.may = may;
        self
    }

    const fn tests_may(mut self, may: &'static [&'static str]) -> Self {
        self.tests_may = may;
        self
    }

    const fn client(mut self) -> Self {
        self.client = true;
        self
    }

    const fn program(mut self) -> Self {
        self.program = true;
        self
    }
}

const CLUSTER: &[&str] = &["windlass-cluster", "windlass-skip"];
const SHARED: &[&str] = &["windlass-apimachinery"];
const SKIP: &[&str] = &["windlass-skip"];
const FRAMEWORK: &[&str] = &["windlass"];
const OPERATOR_PARTS: &[&str] = &["windlass", "windlass-apimachinery", "windlass-cel"];
const FRAMEWORK_AND_SHARED: &[&str] = &["windlass", "windlass-apimachinery"];
const CLUSTER_PARTS: &[&str] = &[
    "windlass",
    "windlass-apiserver",
    "windlass-cluster-macros",
    "windlass-explore",
    "windlass-manifests",
    "windlass-node",
    "windlass-workloads",
];
const EXPLORE_PARTS: &[&str] = &[
    "windlass",
    "windlass-apiserver",
    "windlass-cel",
    "windlass-node",
    "windlass-workloads",
];
const EVERYTHING: &[&str] = &[
    "windlass",
    "windlass-apiserver",
    "windlass-charts",
    "windlass-cluster",
    "windlass-declarative",
    "windlass-explore",
    "windlass-manifests",
    "windlass-node",
    "windlass-workloads",
    "operators/",
];

const TABLE: &[Row] = &[
    Row::of("windlass-skip"),
    Row::of("windlass-apimachinery"),
    Row::of("windlass-manifests"),
    Row::of("windlass")
        .may(&["windlass-apimachinery", "windlass-manifests"])
        .client(),
    Row::of("windlass-cel").may(SHARED),
    Row::of("windlass-regexp"),
    Row::of("windlass-charts").may(&["windlass-regexp"]),
    Row::of("windlass-schema").may(&["windlass-apimachinery", "windlass-cel", "windlass-regexp"]),
    Row::of("windlass-store").may(SHARED),
    Row::of("windlass-apiserver").may(&[
        "windlass-apimachinery",
        "windlass-cel",
        "windlass-schema",
        "windlass-store",
    ]),
    Row::of("windlass-workloads")
        .may(FRAMEWORK_AND_SHARED)
        .client(),
    Row::of("windlass-node")
        .may(FRAMEWORK_AND_SHARED)
        .tests_may(SKIP)
        .client(),
    Row::of("windlass-cluster-macros"),
    Row::of("windlass-explore")
        .may(EXPLORE_PARTS)
        .tests_may(SKIP)
        .client(),
    Row::of("windlass-cluster")
        .may(CLUSTER_PARTS)
        .tests_may(SKIP)
        .client(),
    Row::of("windlass-declarative")
        .may(&["windlass", "windlass-apimachinery", "windlass-charts"])
        .tests_may(CLUSTER)
        .client(),
    Row::of("operators/")
        .may(OPERATOR_PARTS)
        .tests_may(CLUSTER)
        .client()
        .program(),
    Row::of("examples/")
        .may(FRAMEWORK)
        .tests_may(CLUSTER)
        .client()
        .program(),
    Row::of("windlass-bench-apiserver")
        .may(&["windlass-apiserver"])
        .program(),
    Row::of("bench-framework").may(FRAMEWORK).client().program(),
    Row::of("widgets-kube-runtime")
        .may(&["bench-framework"])
        .client()
        .program(),
    Row::of("windlass-cli").may(EVERYTHING).client().program(),
    Row::of("windlass-tests").tests_may(SKIP).client().program(),
];

/// The folder of a package inside the workspace, such as `operators/`, and its name.
fn place<'a>(package: &'a Value, root: &str) -> (String, &'a str) {
    let manifest = package["manifest_path"]
        .as_str()
        .expect("a package has a manifest");
    let inside = manifest
        .strip_prefix(root)
        .unwrap_or(manifest)
        .trim_start_matches('/');
    let folder = inside.split_once('/').map_or("", |(folder, _)| folder);
    (
        format!("{folder}/"),
        package["name"].as_str().expect("a package has a name"),
    )
}

fn row_of(folder: &str, name: &str) -> Option<&'static Row> {
    TABLE
        .iter()
        .find(|row| row.crates == name || row.crates == folder)
}

/// Every sentence about an edge the table forbids; none when the house stands as drawn.
fn wrong_edges(metadata: &Value) -> Vec<String> {
    let root = metadata["workspace_root"]
        .as_str()
        .expect("metadata names the workspace");
    let packages = metadata["packages"]
        .as_array()
        .expect("metadata lists packages");
    let members: Vec<_> = packages
        .iter()
        .map(|package| place(package, root))
        .collect();
    let mut wrong = Vec::new();
    for (package, (folder, name)) in packages.iter().zip(&members) {
        let Some(row) = row_of(folder, name) else {
            wrong.push(format!("{name} is not in the table of the architecture"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"]
                .as_str()
                .expect("a dependency has a name");
            let in_tests = dependency["kind"] == "dev";
            if let Some((its_folder, _)) = members.iter().find(|(_, member)| *member == on) {
                let allows =
                    |list: &[&str]| list.contains(&on) || list.contains(&its_folder.as_str());
                if !(allows(row.may) || in_tests && allows(row.tests_may)) {
                    let how = if in_tests { "in its tests" } else { "at all" };
                    wrong.push(format!("{name} may not depend on {on} {how}"));
                }
                continue;
            }
            if matches!(on, "kube" | "kube-client" | "kube-runtime") && !row.client && !in_tests {
                wrong.push(format!(
                    "{name} may not depend on {on}: it never speaks to a cluster"
                ));
            }
            let versions = dependency["features"].as_array().into_iter().flatten();
            let picks_version = versions
                .filter_map(Value::as_str)
                .any(|feature| feature.starts_with("v1_"));
            if on == "k8s-openapi" && picks_version && !in_tests && !row.program {
                wrong.push(format!(
                    "{name} is a library and may not choose k8s-openapi's Kubernetes version"
                ));
            }
        }
    }
    wrong
}

#[test]
fn dependencies_point_up_the_table() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let names: Vec<_> = metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|p| &p["name"])
        .collect();
    assert!(
        names.iter().any(|name| *name == "windlass-apiserver"),
        "cargo metadata lists the workspace: {names:?}"
    );
    let wrong = wrong_edges(&metadata);
    assert!(
        wrong.is_empty(),
        "wrong dependencies:\n  {}",
        wrong.join("\n  ")
    );
}

/// A workspace with one package of interest, and the crates it could wrongly depend on.
fn workspace_with(folder: &str, name: &str, dependencies: &Value) -> Value {
    let package = |folder: &str, name: &str, dependencies: &Value| serde_json::json!({"name": name, "manifest_path": format!("/w/{folder}/Cargo.toml"), "dependencies": dependencies});
    let none = serde_json::json!([]);
    serde_json::json!({"workspace_root": "/w", "packages": [
        package(folder, name, dependencies),
        package("crates/windlass-cluster", "windlass-cluster", &none),
        package("operators/demo", "demo-operator", &none),
    ]})
}

#[test]
fn a_wrong_edge_is_caught() {
    let edge =
        |on: &str, kind: Value| serde_json::json!([{"name": on, "kind": kind, "features": []}]);
    let cases = [
        // The framework never knows that the embedded cluster exists, not even in its tests.
        (
            "crates/windlass",
            "windlass",
            edge("windlass-cluster", Value::Null),
            1,
        ),
        (
            "crates/windlass",
            "windlass",
            edge("windlass-cluster", "dev".into()),
            1,
        ),
        (
            "crates/windlass-apiserver",
            "windlass-apiserver",
            edge("demo-operator", "build".into()),
            1,
        ),
        (
            "crates/windlass-apiserver",
            "windlass-apiserver",
            edge("kube", Value::Null),
            1,
        ),
        (
            "operators/memcached",
            "memcached-operator",
            edge("windlass-cluster", Value::Null),
            1,
        ),
        (
            "operators/memcached",
            "memcached-operator",
            edge("demo-operator", Value::Null),
            1,
        ),
        (
            "crates/windlass-extra",
            "windlass-extra",
            edge("serde", Value::Null),
            1,
        ),
        // And what the table allows passes.
        (
            "operators/memcached",
            "memcached-operator",
            edge("windlass-cluster", "dev".into()),
            0,
        ),
        (
            "crates/windlass-cli",
            "windlass-cli",
            edge("demo-operator", Value::Null),
            0,
        ),
        (
            "crates/windlass-apiserver",
            "windlass-apiserver",
            edge("kube", "dev".into()),
            0,
        ),
    ];
    for (folder, name, dependencies, expected) in cases {
        let wrong = wrong_edges(&workspace_with(folder, name, &dependencies));
        assert_eq!(
            wrong.len(),
            expected,
            "{name} with {dependencies}: {wrong:?}"
        );
    }
}

#[test]
fn a_library_that_picks_a_kubernetes_version_is_caught() {
    let picks = |kind: Value| serde_json::json!([{"name": "k8s-openapi", "kind": kind, "features": ["v1_36"]}]);
    let library = |kind| {
        wrong_edges(&workspace_with(
            "crates/windlass-node",
            "windlass-node",
            &picks(kind),
        ))
    };
    assert_eq!(library(Value::Null).len(), 1);
    assert!(library("dev".into()).is_empty());
    let program = wrong_edges(&workspace_with(
        "operators/etcd",
        "etcd-operator",
        &picks(Value::Null),
    ));
    assert!(program.is_empty(), "{program:?}");
}
