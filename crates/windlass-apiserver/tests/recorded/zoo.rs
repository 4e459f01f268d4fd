//! The definitions of well-known operators, on the real server and on ours: `make zoo`.
//!
//! `WINDLASS_ZOO` names a folder with a folder per operator, and in it a file per definition, as
//! `scripts/zoo` fetches them; `WINDLASS_RECORD` names the kubeconfig of a real server. Each
//! definition is created, applied twice, annotated, edited, its objects listed, explained and made
//! without anything in them, and it is deleted. Every answer must be the same.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::case::{Case, Server};
use crate::hooks::Scripted;
use crate::servers::Servers;
use crate::{compare, normalise, real_time, run, virtual_time};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A definition that neither conversion webhooks nor what a controller wrote stand in the way of.
fn prepared(mut definition: Value) -> Value {
    let spec = definition["spec"].as_object_mut().expect("a spec");
    spec.remove("conversion");
    let map = definition.as_object_mut().expect("a definition");
    map.remove("status");
    let metadata = map["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|field, _| matches!(field.as_str(), "name" | "annotations" | "labels"));
    definition
}

/// What is done with one definition. Bodies are sent in base64: what looks like a variable in them is
/// none.
fn case_of(definition: &Value) -> Case {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let path = format!("{DEFINITIONS}/{}", text(&definition["metadata"]["name"]));
    let spec = &definition["spec"];
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let scope = if spec["scope"] == "Namespaced" {
        "/namespaces/{ns}"
    } else {
        ""
    };
    let step = |name: &str, method: &str, path: &str| json!({"name": name, "method": method, "path": path});
    let with = |mut step: Value, media_type: &str, body: &Value| {
        step["contentType"] = media_type.into();
        step["base64Body"] = STANDARD.encode(body.to_string()).into();
        step
    };
    let (merge, apply) = (
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    );
    let until = |mut step: Value, until: Value| {
        step["until"] = until;
        step
    };
    // Two controllers of the real server write conditions, in whatever order they come to it.
    let quiet = |mut step: Value| {
        step["keep"] = json!({"list": "/status/conditions", "field": "/type", "values": []});
        step
    };
    let applied = format!("{path}?fieldManager=zoo&force=true");
    let established = json!({"equals": {"/status/conditions/1/status": "True"}});
    let mut steps = vec![
        with(
            step("create", "POST", DEFINITIONS),
            "application/json",
            definition,
        ),
        until(step("established", "GET", &path), established),
        with(step("apply", "PATCH", &applied), apply, definition),
        with(step("apply again", "PATCH", &applied), apply, definition),
        with(
            step("annotate", "PATCH", &path),
            merge,
            &json!({"metadata": {"annotations": {"a": "b"}}}),
        ),
        with(
            step("edit", "PATCH", &path),
            merge,
            &json!({"spec": {"names": {"categories": ["zoo"]}}}),
        ),
        until(
            step("edited", "GET", &path),
            json!({"equals": {"/status/acceptedNames/categories": ["zoo"]}}),
        ),
    ];
    for version in spec["versions"].as_array().into_iter().flatten() {
        if version["served"] != true {
            continue;
        }
        let name = text(&version["name"]);
        let objects = format!("/apis/{group}/{name}{scope}/{plural}");
        steps.push(until(
            step(&format!("list {name}"), "GET", &objects),
            json!({"status": 200}),
        ));
        let mut table = step(&format!("table {name}"), "GET", &objects);
        table["headers"] = json!({"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"});
        steps.push(table);
        let kind = &spec["names"]["kind"];
        let empty = json!({"apiVersion": format!("{group}/{name}"), "kind": kind, "metadata": {"name": "empty"}});
        let dry = format!("{objects}?dryRun=All&fieldValidation=Strict");
        steps.push(with(
            step(&format!("empty {name}"), "POST", &dry),
            "application/json",
            &empty,
        ));
        let odd = json!({"apiVersion": format!("{group}/{name}"), "kind": kind, "metadata": {"name": "odd"}, "spec": {"odd": 1}, "status": {"odd": 1}});
        steps.push(with(
            step(&format!("odd {name}"), "POST", &dry),
            "application/json",
            &odd,
        ));
    }
    steps.push(step("delete", "DELETE", &path));
    for step in &mut steps {
        let of_objects = ["list ", "table ", "empty ", "odd "];
        let name = step["name"].as_str().unwrap_or_default();
        if !of_objects.iter().any(|start| name.starts_with(start)) {
            *step = quiet(step.take());
        }
    }
    steps.push(until(step("gone", "GET", &path), json!({"status": 404})));
    serde_json::from_value(json!({"about": "", "steps": steps})).expect("a case")
}

#[test]
#[ignore = "it needs a real server and the definitions: `make zoo` has both"]
fn definitions_of_well_known_operators_are_treated_as_by_the_real_server() {
    let folder = std::env::var_os("WINDLASS_ZOO").expect("WINDLASS_ZOO names a folder");
    let kubeconfig = std::env::var_os("WINDLASS_RECORD").expect("WINDLASS_RECORD names a file");
    let most: usize = std::env::var("ZOO_MOST")
        .ok()
        .and_then(|most| most.parse().ok())
        .unwrap_or(usize::MAX);
    let (mut played, mut differing) = (0, Vec::new());
    for operator in sorted(Path::new(&folder)) {
        for file in sorted(&operator).into_iter().take(most) {
            let bytes = std::fs::read(&file).expect("a file");
            let definition = prepared(serde_json::from_slice(&bytes).expect("JSON"));
            let case = case_of(&definition);
            let name = format!("zoo_{played}");
            let real = real_time(async {
                let hooks = Scripted::new(case.webhooks.clone());
                let servers = Servers::real(Path::new(&kubeconfig), hooks).await;
                normalise::normalise(run::run(&name, &case, &servers).await)
            });
            let ours = virtual_time(async {
                let servers = Servers::ours(Server::Plain, Scripted::new(case.webhooks.clone()));
                normalise::normalise(run::run(&name, &case, &servers).await)
            });
            played += 1;
            let differences = compare::compare(&real, &ours);
            if differences.is_empty() {
                continue;
            }
            println!("{}", file.display());
            for difference in &differences {
                println!("  {}", difference.step);
                for line in difference.lines.iter().take(5) {
                    let line: String = line.chars().take(300).collect();
                    println!("    {line}");
                }
            }
            differing.push(file);
        }
    }
    println!("{played} definitions, {} differ", differing.len());
    assert!(played > 0, "the folder is empty");
    assert!(differing.is_empty(), "they differ: {differing:?}");
}
