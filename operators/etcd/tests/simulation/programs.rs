//! Each program has the role of its controllers, and no more.

use etcd_operator::operator;
use windlass::manifests::role::cluster_role;

fn may(program: &str) -> Vec<String> {
    let operator = operator().as_program(program).expect("a program");
    assert_eq!(operator.name(), program);
    operator.check().expect("no flaws");
    let description = operator.description();
    let role = cluster_role(&description);
    let rules = role.rules.unwrap_or_default().into_iter();
    let mut all: Vec<String> = rules
        .flat_map(|rule| {
            let resources = rule.resources.unwrap_or_default();
            let verbs = rule.verbs;
            resources
                .into_iter()
                .flat_map(move |resource| {
                    verbs
                        .iter()
                        .map(move |verb| format!("{verb} {resource}"))
                        .collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        })
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn backup_operator_reads_its_secret_and_changes_nothing_but_its_own_kind() {
    let may = may("etcd-backup-operator");
    assert!(may.contains(&"get secrets".to_owned()), "{may:?}");
    for forbidden in [
        "list secrets",
        "watch secrets",
        "create pods",
        "delete pods",
        "get etcdclusters",
        "patch etcdclusters",
    ] {
        assert!(!may.contains(&forbidden.to_owned()), "{forbidden}: {may:?}");
    }
}

#[test]
fn restore_operator_makes_no_pods() {
    let may = may("etcd-restore-operator");
    assert!(may.contains(&"patch etcdclusters".to_owned()), "{may:?}");
    for forbidden in [
        "create pods",
        "delete pods",
        "list secrets",
        "create persistentvolumeclaims",
    ] {
        assert!(!may.contains(&forbidden.to_owned()), "{forbidden}: {may:?}");
    }
}

#[test]
fn cluster_operator_reads_no_secret_but_that_of_its_webhook() {
    let operator = operator()
        .as_program("etcd-cluster-operator")
        .expect("a program");
    let description = operator.description();
    let rules = description.controllers.iter().flat_map(|part| &part.rules);
    assert!(!rules.clone().any(|rule| rule.resource == "secrets"));
    assert!(rules.clone().any(|rule| rule.resource == "pods"));
    let kinds: Vec<String> = operator
        .crds()
        .into_iter()
        .map(|crd| crd.spec.names.kind)
        .collect();
    assert_eq!(kinds, ["EtcdCluster"]);
}
