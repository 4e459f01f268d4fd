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
