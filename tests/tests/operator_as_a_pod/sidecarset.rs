//! The sidecarset operator as a pod: its webhooks are called at its Service.

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
        refused.contains("spec.selector: Invalid value: {}: an empty selector"),
        "{refused}"
    );
    for sample in ["apps_v1alpha1_sidecarset", "apps_v1_deployment"] {
        let sample = file("sidecarset", &format!("config/samples/{sample}.yaml"));
        folder.kubectl(&["apply", "-f", &sample]);
    }
    let pods = deployed.until_ready("app=sidecarset-sample", 2);
    let address = address(&pods[0]);
    let main = memcached_pid(address).expect("the pod's own answers");
    let sidecar = memcached_pid_at(address, 11212).expect("the sidecar answers");
    let image = r#"[{"op":"replace","path":"/spec/containers/0/image","value":"memcached:1.6"}]"#;
    let set = "sidecarset/sidecarset-sample";
    folder.kubectl(&["patch", set, "--type=json", "-p", image]);
    let counts = "jsonpath={.status.updatedReadyPods}/{.status.matchedPods}";
    folder.until("both pods upgraded", |_| {
        (folder.kubectl(&["get", set, "-o", counts]) == "2/2").then_some(())
    });
    assert_eq!(memcached_pid(address), Some(main), "the pod's own went on");
    let after = memcached_pid_at(address, 11212);
    assert!(after.is_some() && after != Some(sidecar), "{after:?}");
    deployed.did_with_its_rights();
}
