//! The sidecarset operator as a pod: its webhooks are called at its Service.

use std::collections::BTreeMap;

use windlass_tests::{memcached_pid, memcached_pid_at};

use crate::{Deployed, address, file};

const EVERYBODY: &str = "
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: everybody}
spec:
  selector: {}
  containers: [{name: cache, image: memcached}]
";

#[test]
fn injects_sidecars_and_upgrades_them_in_place() {
    let Some(deployed) = Deployed::new("sidecarset") else {
        return;
    };
    let folder = &deployed.folder;
    std::fs::write(folder.path().join("everybody.yaml"), EVERYBODY).expect("a file can be written");
    let refused = folder.kubectl_fails(&["apply", "-f", "everybody.yaml"]);
    assert!(
        refused.contains("spec.selector: Invalid value: an empty selector"),
        "{refused}"
    );
    for sample in ["apps_v1alpha1_sidecarset", "apps_v1_deployment"] {
        let sample = file("sidecarset", &format!("config/samples/{sample}.yaml"));
        folder.kubectl(&["apply", "-f", &sample]);
    }
    let pods = deployed.until_ready("app=sidecarset-sample", 2);
    let address = address(&pods[0]);
    assert!(memcached_pid(address).is_some(), "the pod's own answers");
    assert!(
        memcached_pid_at(address, 11212).is_some(),
        "the sidecar answers"
    );
    let name = pods[0]["metadata"]["name"].as_str().expect("a name");
    let containers = || -> BTreeMap<String, String> {
        let all =
            "jsonpath={range .status.containerStatuses[*]}{.name} {.containerID}{\"\\n\"}{end}";
        let all = folder.kubectl(&["get", "pod", name, "-o", all]);
        let each = all.lines().filter_map(|line| line.split_once(' '));
        each.map(|(name, id)| (name.to_owned(), id.to_owned()))
            .collect()
    };
    let before = containers();
    let image = r#"[{"op":"replace","path":"/spec/containers/0/image","value":"memcached:1.6"}]"#;
    let set = "sidecarset/sidecarset-sample";
    folder.kubectl(&["patch", set, "--type=json", "-p", image]);
    let counts = "jsonpath={.status.updatedReadyPods}/{.status.matchedPods}";
    folder.until("both pods upgraded", |_| {
        (folder.kubectl(&["get", set, "-o", counts]) == "2/2").then_some(())
    });
    let after = containers();
    let sidecar = "jsonpath={.spec.containers[0].name}";
    let sidecar = folder.kubectl(&["get", set, "-o", sidecar]);
    assert_eq!(after.len(), 2, "{after:?}");
    for (container, id) in &after {
        let is_new = before[container] != *id;
        assert_eq!(is_new, *container == sidecar, "{before:?} {after:?}");
    }
    assert!(memcached_pid_at(address, 11212).is_some());
    deployed.did_with_its_rights();
}
