//! The generated text, as people read it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{NewApi, NewProject, NewWebhook, create_api, create_webhook, init};

/// Every file of a project, one after the other.
fn shown(root: &Path) -> String {
    fn below(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    let mut paths = Vec::new();
    below(root, root, &mut paths);
    paths.sort();
    let mut text = String::new();
    for path in paths {
        let content = fs::read_to_string(root.join(&path)).unwrap();
        let _ = writeln!(text, "──── {path}\n{content}");
    }
    text
}

fn project(folder: &Path) -> std::path::PathBuf {
    let new = NewProject {
        folder: folder.join("my-operator"),
        domain: "example.com".to_owned(),
        name: None,
        repo: Some("github.com/me/my-operator".to_owned()),
        windlass: None,
    };
    init(&new).unwrap().0
}

fn api(version: &str, kind: &str, namespaced: bool) -> NewApi {
    NewApi {
        group: "cache".to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: None,
        short_names: Vec::new(),
        namespaced,
    }
}

/// What a step adds or changes.
fn step(root: &Path, step: impl FnOnce(&Path)) -> String {
    let before = shown(root);
    step(root);
    let after = shown(root);
    let kept: Vec<&str> = before.split("──── ").collect();
    let changed = after.split("──── ").filter(|file| !kept.contains(file));
    changed.flat_map(|file| ["──── ", file]).collect()
}

#[test]
fn init_writes_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let root = project(folder.path());
    insta::assert_snapshot!("init", shown(&root));
}

#[test]
fn create_api_writes_a_kind() {
    let folder = tempfile::tempdir().unwrap();
    let root = project(folder.path());
    let one = step(&root, |root| {
        drop(create_api(root, &api("v1", "Memcached", true)).unwrap());
    });
    insta::assert_snapshot!("api", one);
    let cluster = step(&root, |root| {
        drop(create_api(root, &api("v1", "SidecarSet", false)).unwrap());
    });
    insta::assert_snapshot!("cluster_scoped_api", cluster);
    let version = step(&root, |root| {
        drop(create_api(root, &api("v2", "Memcached", true)).unwrap());
    });
    insta::assert_snapshot!("second_version", version);
    let third = step(&root, |root| {
        drop(create_api(root, &api("v3", "Memcached", true)).unwrap());
    });
    insta::assert_snapshot!("third_version", third);
}

#[test]
fn create_webhook_writes_a_webhook() {
    let folder = tempfile::tempdir().unwrap();
    let root = project(folder.path());
    create_api(&root, &api("v1", "Memcached", true)).unwrap();
    let webhook =
        |group: &str, kind: &str, validation: bool, operations: Option<&str>| NewWebhook {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            defaulting: !validation,
            validation,
            conversion: false,
            operations: operations.map(|one| vec![one.to_owned()]),
        };
    let own = step(&root, |root| {
        drop(create_webhook(root, &webhook("cache", "Memcached", false, Some("Create"))).unwrap());
    });
    insta::assert_snapshot!("webhook", own);
    let validating = step(&root, |root| {
        drop(create_webhook(root, &webhook("cache", "Memcached", true, None)).unwrap());
    });
    insta::assert_snapshot!("webhook_that_judges_too", validating);
    let pods = step(&root, |root| {
        drop(create_webhook(root, &webhook("core", "Pod", false, None)).unwrap());
    });
    insta::assert_snapshot!("webhook_of_pods", pods);
}
