//! The memcached operator as a pod.

use std::fs;

use windlass_tests::memcached_pid;

use crate::{Deployed, address};

// The size is left to the webhook's default, and then scaled.
const SAMPLE: &str = "
apiVersion: cache.example.com/v1
kind: Memcached
metadata: {name: deployed}
spec: {expose: true}
";

#[test]
fn runs_servers_and_scales_them() {
    let Some(deployed) = Deployed::new("memcached") else {
        return;
    };
    let folder = &deployed.folder;
    fs::write(folder.path().join("sample.yaml"), SAMPLE).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "sample.yaml"]);
    let of_it = "memcached=deployed";
    deployed.until_ready(of_it, 1);
    folder.kubectl(&["scale", "memcached/deployed", "--replicas=2"]);
    for pod in deployed.until_ready(of_it, 2) {
        assert!(memcached_pid(address(&pod)).is_some(), "{pod:#}");
    }
    folder.until("the operator's report", |status| {
        let resource = &status["customResources"][0];
        let nodes = resource["status"]["nodes"].as_array().map_or(0, Vec::len);
        (nodes == 2 && resource["metadata"]["name"] == "deployed").then_some(())
    });
    let clusterip = "jsonpath={.spec.clusterIP}";
    let service = folder.kubectl(&["get", "service", "deployed-service", "-o", clusterip]);
    folder.until("an answer through the Service", |_| memcached_pid(&service));
    let long = SAMPLE.replace("deployed", &"x".repeat(64));
    fs::write(folder.path().join("long.yaml"), long).expect("a file can be written");
    let refused = folder.kubectl_fails(&["apply", "-f", "long.yaml"]);
    assert!(
        refused.contains("must be no more than 63 characters"),
        "{refused}"
    );
    deployed.did_with_its_rights();
}
