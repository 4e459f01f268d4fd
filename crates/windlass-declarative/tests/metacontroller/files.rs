//! An operator that is a folder of files.

use std::sync::Arc;

use kube::CustomResourceExt;
use windlass_cluster::TestCluster;
use windlass_declarative::metacontroller::{Options, Transport, operator_of_files};

use crate::hooks::{Hooks, Thing, expected, maps, texts, thing};

const FILES: &str = r"
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: maps}
spec:
  generateSelector: true
  parentResource: {apiVersion: example.com/v1, resource: things}
  childResources:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  hooks:
    sync: {webhook: {url: 'http://hook/sync'}}
";

fn files() -> String {
    let definition = serde_json::to_string(&Thing::crd()).unwrap();
    format!("{FILES}---\n{definition}\n")
}

/// The operator runs with the role that follows from the files: what is missing in it fails this.
#[windlass_cluster::test]
async fn operator_of_files_works_with_exactly_its_rights(cluster: TestCluster) {
    let hooks = Arc::new(Hooks::default());
    hooks.on("http://hook/sync", maps);
    let options = Options {
        transport: Arc::clone(&hooks) as Arc<dyn Transport>,
        exec: false,
    };
    let operator = operator_of_files("maps", &files(), options).unwrap();
    let mut rights: Vec<String> = operator
        .description()
        .rules()
        .map(|rule| {
            format!(
                "{}: {}",
                rule.resource,
                Vec::from_iter(rule.verbs.clone()).join(",")
            )
        })
        .collect();
    rights.sort();
    rights.dedup();
    assert_eq!(
        rights,
        [
            "configmaps: create,delete,get,list,patch,watch",
            "events: create,patch",
            "things/finalizers: update",
            "things/status: patch",
            "things: get",
            "things: list,watch",
            "things: patch",
        ]
    );
    cluster.start(operator).await;
    cluster.create(thing("t", &["a"])).await;
    cluster.settle().await;
    assert_eq!(texts(&cluster).await, expected(&[("a", "one")]));
}

#[test]
fn kind_that_is_in_no_file_is_named() {
    let error = operator_of_files("maps", FILES, Options::default())
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("cannot find the kind of things in example.com/v1"),
        "{error}"
    );
}

#[test]
fn files_without_a_controller_are_refused() {
    let error = operator_of_files("none", "kind: ConfigMap", Options::default())
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("no CompositeController"),
        "{error}"
    );
}
