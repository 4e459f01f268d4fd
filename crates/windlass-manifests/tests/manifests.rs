//! What people read: manifests and the explanation, as snapshots.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames, CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
};
use windlass_manifests::{
    Description, Installation, Part, Rule, Watched, explain, manifests, role::policy_rules,
    to_yaml, tree,
};

fn rule(group: &str, resource: &str, verbs: &[&str], why: &str) -> Rule {
    Rule {
        names: std::collections::BTreeSet::new(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        why: why.to_owned(),
    }
}

fn description() -> Description {
    let mut crd = CustomResourceDefinition {
        spec: CustomResourceDefinitionSpec {
            group: "demo.dev".to_owned(),
            names: CustomResourceDefinitionNames {
                kind: "Thing".to_owned(),
                plural: "things".to_owned(),
                ..CustomResourceDefinitionNames::default()
            },
            scope: "Namespaced".to_owned(),
            versions: vec![CustomResourceDefinitionVersion {
                name: "v1".to_owned(),
                served: true,
                storage: true,
                schema: serde_json::from_value(serde_json::json!({
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": { "spec": { "type": "object" } },
                    },
                }))
                .unwrap(),
                ..CustomResourceDefinitionVersion::default()
            }],
            ..CustomResourceDefinitionSpec::default()
        },
        ..CustomResourceDefinition::default()
    };
    crd.metadata.name = Some("things.demo.dev".to_owned());
    Description {
        name: "thing-operator".to_owned(),
        version: "1.2.3".to_owned(),
        crds: vec![crd],
        controllers: vec![Part {
            name: "thing".to_owned(),
            purpose: "reconciles things.demo.dev".to_owned(),
            watches: vec![Watched {
                resource: "things.demo.dev".to_owned(),
                scope: Some("namespace here".to_owned()),
                why: "changes wake the object itself".to_owned(),
            }],
            rules: vec![
                rule(
                    "demo.dev",
                    "things",
                    &["watch", "get", "list"],
                    "reconciles them",
                ),
                rule(
                    "demo.dev",
                    "things/status",
                    &["patch"],
                    "reports their status",
                ),
                rule(
                    "apps",
                    "deployments",
                    &["get", "list", "watch"],
                    "reads them",
                ),
                rule(
                    "apps",
                    "replicasets",
                    &["get", "list", "watch"],
                    "reads them",
                ),
            ],
        }],
        tasks: vec![Part {
            name: "sweep".to_owned(),
            purpose: "background task with raw client access".to_owned(),
            watches: Vec::new(),
            rules: vec![rule(
                "apps",
                "deployments",
                &["delete"],
                "raw client access",
            )],
        }],
        ..Description::default()
    }
}

#[test]
fn manifests_are_complete_and_in_the_order_they_can_be_applied() {
    let description = description();
    let manifests = manifests(&description, &Installation::of(&description)).unwrap();
    insta::assert_snapshot!(to_yaml(&manifests).unwrap());
}

#[test]
fn the_explanation_says_why() {
    insta::assert_snapshot!(explain(&description()));
}

#[test]
fn rules_of_one_resource_are_one_rule_and_equal_rules_share_it() {
    let rules = policy_rules(&description());
    let brief: Vec<String> = rules
        .iter()
        .map(|rule| {
            let resources = rule.resources.clone().unwrap_or_default().join("+");
            format!("{resources}: {}", rule.verbs.join(","))
        })
        .collect();
    assert_eq!(
        brief,
        [
            "deployments: delete,get,list,watch",
            "replicasets: get,list,watch",
            "things: get,list,watch",
            "things/status: patch",
        ]
    );
}

#[test]
fn the_tree_is_that_of_kubebuilder_and_the_same_every_time() {
    let description = description();
    let installation = Installation::of(&description);
    let files = tree(&description, &installation).unwrap();
    assert_eq!(files, tree(&description, &installation).unwrap());
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    insta::assert_snapshot!(paths.join("\n"));
    for (name, called) in [
        ("default", "kustomization.yaml"),
        ("manager", "Kustomization"),
        ("rbac", "Kustomization"),
    ] {
        let path = format!("config/{name}/{called}");
        let file = files.iter().find(|file| file.path == path).unwrap();
        insta::assert_snapshot!(name, file.text);
    }
}
