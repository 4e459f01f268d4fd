//! The demo operator as a pod.

use serde_json::Value;

use crate::{Deployed, file};

#[test]
fn runs_the_sample_and_follows_its_configuration() {
    let Some(deployed) = Deployed::new("demo") else {
        return;
    };
    let folder = &deployed.folder;
    let label = "app.kubernetes.io/name=demo";
    let demo = file("demo", "config/samples/demo_v1_demo.yaml");
    folder.kubectl(&["apply", "-f", &demo]);
    let degraded = r#"jsonpath={.status.conditions[?(@.type=="Degraded")].reason}"#;
    folder.until("the report of a missing ConfigMap", |_| {
        let reason = folder.kubectl(&["get", "demo", "demo-sample", "-o", degraded]);
        (reason == "ConfigMapNotFound").then_some(())
    });
    let map = file("demo", "config/samples/core_v1_configmap.yaml");
    folder.kubectl(&["apply", "-f", &map]);
    let before = deployed.until_ready(label, 3);
    let data = r#"{"data":{"greeting":"good evening"}}"#;
    folder.kubectl(&["patch", "configmap", "demo", "--type=merge", "-p", data]);
    folder.until("three new pods", |_| {
        let now = deployed.ready(label);
        let is_new = |pod: &Value| {
            let same = |old: &Value| old["metadata"]["uid"] == pod["metadata"]["uid"];
            !before.iter().any(same)
        };
        (now.len() == 3 && now.iter().all(is_new)).then_some(())
    });
    folder.until("the operator's report", |_| {
        let counts = "jsonpath={.status.readyReplicas} {.status.conditions[?(@.type==\"Available\")].status}";
        let counts = folder.kubectl(&["get", "demo", "demo-sample", "-o", counts]);
        (counts == "3 True").then_some(())
    });
    deployed.did_with_its_rights();
}
