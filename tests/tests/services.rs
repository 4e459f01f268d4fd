//! Services where pods are processes: a proxy on loopback addresses.

use std::fs;
use std::time::{Duration, Instant};

use windlass_tests::{Folder, memcached_pid};

const SERVICES: &str = "
apiVersion: v1
kind: Service
metadata: {name: cache}
spec:
  type: NodePort
  selector: {app: cache}
  ports: [{name: cache, port: 11211}]
---
apiVersion: v1
kind: Service
metadata: {name: names}
spec:
  selector: {app: cache}
  ports: [{name: dns, port: 5353, protocol: UDP}]
---
apiVersion: v1
kind: Pod
metadata: {name: cache, labels: {app: cache}}
spec:
  containers:
  - name: main
    image: memcached
    readinessProbe: {tcpSocket: {port: 11211}, periodSeconds: 1}
";

#[test]
fn a_service_leads_to_its_ready_pods_and_says_what_it_cannot_do() {
    let folder = Folder::new("services");
    let printed = folder.windlass_ok(&["up", "--runtime", "process", "--detach"]);
    assert!(
        printed.contains("runtime process: pods are plain processes"),
        "{printed}"
    );
    fs::write(folder.path().join("services.yaml"), SERVICES).expect("a file can be written");
    folder.kubectl(&["apply", "-f", "services.yaml"]);
    folder.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "--timeout=60s",
        "pod/cache",
    ]);
    let address = folder.kubectl(&[
        "get",
        "service",
        "cache",
        "-o",
        "jsonpath={.spec.clusterIP}",
    ]);
    assert!(address.starts_with("127.128."), "{address}");
    let started = Instant::now();
    let process = loop {
        if let Some(process) = memcached_pid(&address) {
            break process;
        }
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{address} does not answer"
        );
        std::thread::sleep(Duration::from_millis(10));
    };
    let pod = folder.kubectl(&["get", "pod", "cache", "-o", "jsonpath={.status.podIP}"]);
    assert_eq!(memcached_pid(&pod), Some(process));
    folder.until("the event about UDP", |_| {
        let events = folder.kubectl(&[
            "get",
            "events",
            "--field-selector=involvedObject.name=names",
        ]);
        events.contains("ProtocolNotSupported").then_some(())
    });
    // Without an endpoint it refuses.
    folder.kubectl(&["label", "pod", "cache", "app-"]);
    let left = Instant::now();
    while memcached_pid(&address).is_some() {
        assert!(
            left.elapsed() < Duration::from_secs(2),
            "the Service still leads to the pod"
        );
    }
}
