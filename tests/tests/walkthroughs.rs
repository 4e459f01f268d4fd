//! The walk-throughs of the docs work, word for word, from an empty folder to the running operator.

use windlass_tests::walkthrough::Terminal;

#[test]
#[ignore = "builds a project of its own, from nothing: minutes; `make scaffold` runs it"]
fn memcached_from_an_empty_folder_to_running_pods() {
    let page = Terminal::play("memcached");
    let pods = page.ask("kubectl get pods -o name");
    assert_eq!(pods.lines().count(), 3, "{pods}");
    let nodes =
        page.ask("kubectl get memcached example-memcached -o jsonpath='{.status.nodes[*]}'");
    assert_eq!(nodes.split_whitespace().count(), 3, "{nodes}");
}

#[test]
#[ignore = "builds a project of its own, from nothing: minutes; `make scaffold` runs it"]
fn demo_from_an_empty_folder_to_an_image_that_runs_as_a_pod() {
    let page = Terminal::play("demo");
    assert_eq!(
        page.ask("kubectl get configmap demo -o jsonpath='{.data.size} {.data.type}'"),
        "19 demo"
    );
    let image = "kubectl -n demo-operator-system get pods -o jsonpath='{.items[*].status.containerStatuses[*].image} {.items[*].status.phase}'";
    assert_eq!(
        page.ask(image),
        "904566722/kubebuilder-demo-operator:1.0.0 Running"
    );
}

#[test]
#[ignore = "builds a project of its own, from nothing: minutes; `make scaffold` runs it"]
fn sidecarset_from_an_empty_folder_to_injected_containers() {
    let page = Terminal::play("sidecarset");
    assert_eq!(
        page.ask("kubectl get pod web -o jsonpath='{.spec.containers[*].name}'"),
        "web sidecar"
    );
    page.run("kubectl wait --for=condition=Ready pod/web --timeout=60s");
    // The columns of the lecture.
    let shown = page.until("kubectl get sidecarset | grep -E 'sidecarset-sample +1 +1'");
    assert!(shown.contains("sidecarset-sample"), "{shown}");
    // The webhooks of its own kind: one fills in, the other refuses.
    assert_eq!(
        page.ask("kubectl get sidecarset sidecarset-sample -o jsonpath='{.spec.containers[0].imagePullPolicy}'"),
        "IfNotPresent"
    );
    let refused = page.refused("kubectl patch sidecarset sidecarset-sample --type=merge -p '{\"spec\":{\"containers\":[]}}'");
    assert!(refused.contains("spec.containers"), "{refused}");
}
