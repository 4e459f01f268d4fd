//! `windlass render` and `windlass rbac`: what a chart makes and needs, without a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_tests::Folder;

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/web-chart")
}

fn windlass(folder: &Folder, arguments: &str) -> String {
    let chart = chart().display().to_string();
    let arguments = arguments.replace("CHART", &chart);
    folder.windlass_ok(&arguments.split_whitespace().collect::<Vec<_>>())
}

fn stages(folder: &Folder, arguments: &str) -> Vec<String> {
    let printed: Value = serde_json::from_str(&windlass(folder, arguments)).unwrap();
    let stages = printed["stages"].as_array().unwrap().iter();
    let shown = stages.map(|stage| {
        let objects = stage["objects"].as_array().unwrap().iter();
        let kinds: Vec<&str> = objects
            .map(|one| one["object"]["kind"].as_str().unwrap())
            .collect();
        format!("{}: {}", stage["stage"].as_str().unwrap(), kinds.join(" "))
    });
    shown.collect()
}

#[test]
fn rendered_chart_shows_stages_with_values_of_files_and_flags() {
    let folder = Folder::new("render");
    fs::write(folder.path().join("v.yaml"), "replicas: 2\npage: File\n").unwrap();
    let text = windlass(
        &folder,
        "render CHART --name shop -f v.yaml --set page=Flag --set migrate.enabled=true",
    );
    let (hook, objects) = text.split_once("# Stage 2: objects\n").unwrap();
    assert!(
        hook.starts_with(
            "# Stage 1: pre-install hook, weight -5\n---\n# Source: web/templates/migrate.yaml\n"
        ),
        "{hook}"
    );
    assert!(hook.contains("name: shop-migrate"), "{hook}");
    for wanted in ["replicas: 2", "index.html: Flag", "kind: Service"] {
        assert!(objects.contains(wanted), "{wanted} in {objects}");
    }
    assert_eq!(
        stages(&folder, "render CHART -o json --set ingress.enabled=true"),
        ["objects: Secret ConfigMap Service Deployment Ingress"]
    );
    assert_eq!(
        stages(
            &folder,
            "render CHART -o json --operation upgrade --set migrate.enabled=true"
        ),
        [
            "pre-upgrade hook, weight -5: Job",
            "objects: Secret ConfigMap Service Deployment"
        ]
    );
}

#[test]
fn chart_that_does_not_render_fails_with_the_place() {
    let folder = Folder::new("render-fails");
    let templates = folder.path().join("templates");
    fs::create_dir_all(&templates).unwrap();
    fs::write(
        folder.path().join("Chart.yaml"),
        "apiVersion: v2\nname: bad\nversion: 1.0.0\n",
    )
    .unwrap();
    fs::write(templates.join("a.yaml"), "a: {{ fail \"no\" }}\n").unwrap();
    let failed = |arguments: &[&str]| {
        let output = folder.windlass(arguments);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let error = failed(&["render", "."]);
    assert_eq!(
        error,
        "error: execution error at (bad/templates/a.yaml:1:6): no\n"
    );
    let error = failed(&["render", "missing"]);
    assert!(error.contains("missing"), "{error}");
    let error = failed(&["render", ".", "--set", "a[=1"]);
    assert!(error.contains("--set a[=1"), "{error}");
}

#[test]
fn role_of_chart_covers_branches_that_are_off_and_names_their_lines() {
    let folder = Folder::new("rbac");
    let printed: Value = serde_json::from_str(&windlass(&folder, "rbac CHART -o json")).unwrap();
    let rules = printed["rules"].as_array().unwrap().iter();
    let resources: Vec<&str> = rules
        .map(|rule| rule["resources"][0].as_str().unwrap())
        .collect();
    assert_eq!(
        resources,
        [
            "configmaps",
            "secrets",
            "services",
            "deployments",
            "jobs",
            "ingresses"
        ]
    );
    let ingress = &printed["rules"][5]["needs"][0];
    assert_eq!(ingress["source"], "web/templates/ingress.yaml");
    assert_eq!(ingress["line"], 3);
    assert_eq!(ingress["when"][0], ".Values.ingress.enabled");
    assert_eq!(
        printed["unknown"][0]["source"],
        "web/templates/ingress.yaml"
    );

    let text = windlass(&folder, "rbac CHART --name shop");
    assert!(text.contains("# web/templates/ingress.yaml:3 if .Values.ingress.enabled\n- apiGroups: [\"networking.k8s.io\"]\n  resources: [\"ingresses\"]\n"), "{text}");
    let role: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(role["metadata"]["name"], "shop");
    assert_eq!(role["rules"].as_array().unwrap().len(), 6);
}
