//! The files of `example/`: what the tutorial applies, made from the operator.

use std::fs;
use std::path::Path;

use etcd_operator::operator;
use k8s_openapi::api::core::v1::EnvVar;
use windlass::manifests::{Installation, Manifest, install, manifests, to_yaml, tree};

/// The programs, and the files of their Deployments.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("etcd-cluster-operator", "etcd-operator", "deployment.yaml"),
    (
        "etcd-backup-operator",
        "etcd-backup-operator",
        "etcd-backup-operator/deployment.yaml",
    ),
    (
        "etcd-restore-operator",
        "etcd-restore-operator",
        "etcd-restore-operator/deployment.yaml",
    ),
];

/// The right to install the definitions, which `run --install-crds` needs.
const INSTALLS: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: etcd-operators-install-crds
rules:
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions, customresourcedefinitions/status]
  verbs: [get, list, create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: etcd-operators-install-crds
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: etcd-operators-install-crds
subjects:
- {kind: ServiceAccount, name: etcd-cluster-operator, namespace: default}
- {kind: ServiceAccount, name: etcd-backup-operator, namespace: default}
- {kind: ServiceAccount, name: etcd-restore-operator, namespace: default}
";

/// Every generated file, by its path.
fn files() -> Vec<(String, String)> {
    let version = operator().description().version;
    let mut files = vec![("rbac/install-crds.yaml".to_owned(), INSTALLS.to_owned())];
    for (program, deployment_name, path) in PROGRAMS {
        let description = operator()
            .as_program(program)
            .expect("a program")
            .description();
        let installation = Installation {
            namespace: "default".to_owned(),
            image: format!("etcd-operator:{version}"),
        };
        let mut deployment = install::deployment(&description, &installation);
        deployment.metadata.name = Some(deployment_name.to_owned());
        let spec = deployment
            .spec
            .as_mut()
            .and_then(|spec| spec.template.spec.as_mut());
        let container = &mut spec.expect("a pod").containers[0];
        container.command = Some(vec![program.to_owned()]);
        container.env = Some(vec![EnvVar {
            name: "OPERATOR_IMAGE".to_owned(),
            value: Some(installation.image.clone()),
            ..EnvVar::default()
        }]);
        container.args = Some(vec!["run".to_owned(), "--install-crds".to_owned()]);
        let text = to_yaml(&[Manifest::of(&deployment).expect("a manifest")]).expect("YAML");
        files.push((path.to_owned(), text));
        let all = manifests(&description, &installation).expect("manifests");
        let others = all.into_iter().filter(|one| {
            let kind = &one.value()["kind"];
            kind != "Namespace" && kind != "Deployment" && kind != "CustomResourceDefinition"
        });
        let others: Vec<Manifest> = others.collect();
        files.push((
            format!("rbac/{program}.yaml"),
            to_yaml(&others).expect("YAML"),
        ));
    }
    files
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/example"))
}

#[test]
fn examples_are_current() {
    for (path, text) in files() {
        let found = fs::read_to_string(folder().join(&path)).unwrap_or_default();
        assert!(
            found == text,
            "example/{path} is stale: run `cargo test -p etcd-operator --test examples -- --ignored`"
        );
    }
}

#[test]
#[ignore = "writes the files"]
fn write_examples() {
    let operator = operator().description();
    let installation = Installation::of(&operator);
    let tree = tree(&operator, &installation)
        .expect("manifests")
        .into_iter();
    let tree = tree.map(|file| (format!("../{}", file.path), file.text));
    for (path, text) in files().into_iter().chain(tree) {
        let path = folder().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}
