//! The definitions of well-known operators, on the real server and on ours: `make zoo`.
//!
//! `WINDLASS_ZOO` names a folder with a folder per operator, and in it a file per definition, as
//! `scripts/zoo` fetches them; `WINDLASS_RECORD` names the kubeconfig of a real server. Each
//! definition is created, applied twice, annotated, edited, its objects listed, explained and made
//! without anything in them, and it is deleted. Every answer must be the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::case::{Case, Server};
use crate::compare::Difference;
use crate::hooks::Scripted;
use crate::normalise::Normal;
use crate::run::Answer;
use crate::servers::Servers;
use crate::{compare, normalise, real_time, run, virtual_time};

/// How many definitions are played at once.
const AT_ONCE: usize = 4;

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
    let mut conditions = vec![json!({"type": "Established", "status": "True"})];
    if group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io") {
        // Written by another controller, before or after.
        conditions.push(json!({"type": "KubernetesAPIApprovalPolicyConformant"}));
    }
    let established = json!({"contains": {"/status/conditions": conditions}});
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
        // A definition that has just changed is set up again: until then clients are to come again.
        steps.push(until(table, json!({"status": 200})));
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
        // What `kubectl explain` reads; the real server makes it some time after the kind is served.
        let mut explain = step(
            &format!("explain {name}"),
            "GET",
            &format!("/openapi/v3/apis/{group}/{name}"),
        );
        let described = format!(
            "/components/schemas/{}/x-kubernetes-group-version-kind",
            described_as(&group, &name, &text(kind))
        );
        explain["until"] = json!({"equals": {
            described: [{"group": group, "version": name, "kind": kind}],
        }});
        steps.push(explain);
    }
    steps.push(step("delete", "DELETE", &path));
    for step in &mut steps {
        let of_objects = ["list ", "table ", "empty ", "odd ", "explain "];
        let name = step["name"].as_str().unwrap_or_default();
        if !of_objects.iter().any(|start| name.starts_with(start)) {
            *step = quiet(step.take());
        }
    }
    steps.push(until(step("gone", "GET", &path), json!({"status": 404})));
    serde_json::from_value(json!({"about": "", "steps": steps})).expect("a case")
}

async fn answers_of(name: &str, case: &Case, servers: &Servers, definition: &Value) -> Vec<Normal> {
    let mut answers = run::run(name, case, servers).await;
    only_described(&mut answers, definition);
    normalise::normalise(answers)
}

/// The name by which the `OpenAPI` document of a version knows a kind.
fn described_as(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{kind}", parts.join("."))
}

/// Of the documents that `kubectl explain` reads, leaves what describes the kind: the real server
/// describes others of its group until it has noticed that they are gone. The texts about the fields
/// of every object are Kubernetes' prose.
fn only_described(answers: &mut [Answer], definition: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &definition["spec"];
    for answer in answers {
        let Some(version) = answer.step.strip_prefix("explain ") else {
            continue;
        };
        let name = described_as(
            &text(&spec["group"]),
            version,
            &text(&spec["names"]["kind"]),
        );
        let described = answer.body.pointer_mut("/components/schemas");
        let Some(mut described) = described.map(|all| all[&name].take()) else {
            continue;
        };
        without_prose(&mut described, true);
        answer.body = described;
    }
}

/// Takes out what is said about the fields of every object, here and in objects inside of it.
fn without_prose(schema: &mut Value, is_object: bool) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    let is_embedded = map.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            without_prose(inner, false);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for (name, property) in properties {
            let of_every_object = matches!(&**name, "apiVersion" | "kind" | "metadata");
            if let Some(property) = property.as_object_mut()
                && of_every_object
                && (is_object || is_embedded)
            {
                property.remove("description");
            }
            without_prose(property, false);
        }
    }
}

/// Every definition of the folder by its group: what shares one would wait for each other's names.
/// Of those that several operators bring along, the first is taken.
fn by_group(folder: &Path, most: usize) -> Vec<Vec<(PathBuf, Value)>> {
    let mut seen = BTreeSet::new();
    let mut groups = BTreeMap::<String, Vec<_>>::new();
    for operator in sorted(folder) {
        for file in sorted(&operator).into_iter().take(most) {
            let bytes = std::fs::read(&file).expect("a file");
            let definition = prepared(serde_json::from_slice(&bytes).expect("JSON"));
            if seen.insert(definition["metadata"]["name"].to_string()) {
                let group = definition["spec"]["group"].to_string();
                groups.entry(group).or_default().push((file, definition));
            }
        }
    }
    groups.into_values().collect()
}

/// Plays one definition on both; tells how they differ.
fn differences_of(name: &str, definition: &Value, kubeconfig: &Path) -> Vec<Difference> {
    let case = case_of(definition);
    let real = real_time(async {
        let hooks = Scripted::new(case.webhooks.clone());
        let servers = Servers::real(kubeconfig, hooks).await;
        answers_of(name, &case, &servers, definition).await
    });
    let ours = virtual_time(async {
        let servers = Servers::ours(Server::Plain, Scripted::new(case.webhooks.clone()));
        answers_of(name, &case, &servers, definition).await
    });
    compare::compare(&real, &ours)
}

fn show(file: &Path, differences: &[Difference]) {
    let mut text = format!("{}\n", file.display());
    for difference in differences {
        let _ = writeln!(text, "  {}", difference.step);
        for line in difference.lines.iter().take(5) {
            let line: String = line.chars().take(300).collect();
            let _ = writeln!(text, "    {line}");
        }
    }
    print!("{text}");
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
    let groups = Mutex::new(by_group(Path::new(&folder), most));
    let (played, differing) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // The real server is waited for most of the time: for what it does in the background.
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let group = groups.lock().expect("nobody panicked").pop();
                    let Some(group) = group else { break };
                    for (file, definition) in group {
                        let name = format!("zoo_{}", played.fetch_add(1, Ordering::Relaxed));
                        let found = differences_of(&name, &definition, Path::new(&kubeconfig));
                        if !found.is_empty() {
                            show(&file, &found);
                            differing.lock().expect("nobody panicked").push(file);
                        }
                    }
                }
            });
        }
    });
    let (played, differing) = (played.into_inner(), differing.into_inner());
    let differing = differing.expect("nobody panicked");
    println!("{played} definitions, {} differ", differing.len());
    assert!(played > 0, "the folder is empty");
    assert!(differing.is_empty(), "they differ: {differing:?}");
}
