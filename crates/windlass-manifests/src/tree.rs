//! The folders of manifests in the layout of kubebuilder: `config/crd`, `config/rbac`,
//! `config/manager`, `config/webhook`, `config/network-policy`, `config/samples`, `config/default`,
//! each with its kustomization, and `dist/install.yaml` with everything in one file.
//!
//! `kubectl kustomize config/default` builds what `dist/install.yaml` holds. The folders can also be
//! applied one by one: `kubectl apply -f config/rbac/` skips a file without an extension, so there
//! the kustomization is called `Kustomization`, and the namespace comes first.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    Description, Installation, Manifest, files, generate, install, manifests, to_yaml, yaml::Error,
};

/// A file of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is, with slashes.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// The image in `config/manager/manager.yaml`, which the kustomization beside it replaces.
const PLACEHOLDER: &str = "controller";

/// How the first line of every file begins: by it a file that is no longer wanted is known as ours.
pub const MARK: &str = "# Written by `";

/// Everything, as files below the operator's folder, in the order of their paths.
pub fn tree(description: &Description, installation: &Installation) -> Result<Vec<File>, Error> {
    let head = format!(
        "{MARK}{} manifests --out`; do not edit.\n",
        description.name
    );
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |path: String, manifests: &[Manifest]| -> Result<(), Error> {
        let text = to_yaml(manifests)?;
        files.insert(path, format!("{head}{text}"));
        Ok(())
    };
    add(
        "dist/install.yaml".to_owned(),
        &manifests(description, installation)?,
    )?;
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = |path: &str| {
        if let Some((folder, file)) = path.split_once('/') {
            let folder = folders.entry(folder.to_owned()).or_default();
            folder.insert(file.to_owned());
        }
    };
    for (path, manifests) in files::objects(description, &installation.namespace)? {
        add(format!("config/{path}"), &manifests)?;
        list(&path);
    }
    let namespace = install::namespace_of(description, &installation.namespace);
    let placeholder = Installation {
        image: format!("{PLACEHOLDER}:latest"),
        ..installation.clone()
    };
    let deployment = install::deployment(description, &placeholder);
    let manager = [Manifest::of(&namespace)?, Manifest::of(&deployment)?];
    add("config/manager/manager.yaml".to_owned(), &manager)?;
    list("manager/manager.yaml");
    // For those who apply this folder by itself; kustomize has the namespace from the manager's.
    add(
        "config/rbac/00_namespace.yaml".to_owned(),
        &[Manifest::of(&namespace)?],
    )?;
    if description.has_webhooks() {
        let manifests = install::webhook_manifests(description, &installation.namespace)?;
        add("config/webhook/manifests.yaml".to_owned(), &manifests)?;
        list("webhook/manifests.yaml");
    }
    for (path, sample) in samples(description) {
        add(format!("config/samples/{path}"), &[Manifest::of(&sample)?])?;
        list(&format!("samples/{path}"));
    }
    let others: Vec<String> = folders
        .keys()
        .filter(|folder| !matches!(folder.as_str(), "default" | "samples"))
        .map(|folder| format!("../{folder}"))
        .collect();
    for (folder, resources) in &folders {
        let resources: Vec<&String> = match folder.as_str() {
            "default" => others.iter().chain(resources).collect(),
            _ => resources.iter().collect(),
        };
        let mut kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": resources,
        });
        match folder.as_str() {
            "default" => kustomization["namespace"] = installation.namespace.as_str().into(),
            "manager" => kustomization["images"] = json!([replacement(&installation.image)]),
            _ => {}
        }
        let name = match folder.as_str() {
            "crd" | "default" => "kustomization.yaml",
            _ => "Kustomization",
        };
        add(
            format!("config/{folder}/{name}"),
            &[Manifest::of(&kustomization)?],
        )?;
    }
    let files = files.into_iter();
    Ok(files.map(|(path, text)| File { path, text }).collect())
}

/// What kustomize puts in place of the placeholder.
fn replacement(image: &str) -> Value {
    if let Some((name, digest)) = image.split_once('@') {
        return json!({ "name": PLACEHOLDER, "newName": name, "digest": digest });
    }
    match image.rsplit_once(':') {
        // A colon before a slash is that of the registry's port.
        Some((name, tag)) if !tag.contains('/') => {
            json!({ "name": PLACEHOLDER, "newName": name, "newTag": tag })
        }
        _ => json!({ "name": PLACEHOLDER, "newName": image, "newTag": "latest" }),
    }
}

/// The samples by file name: those given, and for the other kinds the smallest object there is.
fn samples(description: &Description) -> BTreeMap<String, Value> {
    let mut samples = BTreeMap::new();
    let mut add = |sample: Value| {
        let api_version = sample["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
        let group = group.split('.').next().unwrap_or_default();
        let kind = sample["kind"].as_str().unwrap_or_default().to_lowercase();
        let name = format!("{group}_{version}_{kind}");
        let (mut path, mut nth) = (format!("{name}.yaml"), 1);
        while samples.contains_key(&path) {
            nth += 1;
            path = format!("{name}_{nth}.yaml");
        }
        samples.insert(path, sample);
    };
    let given = |kind: &str| {
        description
            .samples
            .iter()
            .any(|sample| sample["kind"] == kind)
    };
    for sample in &description.samples {
        add(sample.clone());
    }
    for crd in &description.crds {
        let storage = crd.spec.versions.iter().find(|version| version.storage);
        if let (false, Some(version)) = (given(&crd.spec.names.kind), storage) {
            let name = format!("{}-sample", crd.spec.names.kind.to_lowercase());
            let sample = generate::smallest(crd, &version.name, &name);
            sample.into_iter().for_each(&mut add);
        }
    }
    samples
}
