//! What is counted of webhooks, under the names people know.

use kube::Api;
use kube::api::PostParams;
use windlass_cluster::TestCluster;

use crate::demo::{demo, operator, v1, v2};

const MUTATE: &str = "/mutate-demo-example-com-v2-demo";
const VALIDATE: &str = "/validate-demo-example-com-v2-demo";

#[windlass_cluster::test]
async fn calls_panics_and_certificates_are_counted(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(demo("one", Some(4))).await;
    let demos: Api<v2::Demo> = Api::namespaced(cluster.client(), "default");
    let panics = demo("two", Some(666));
    let failed = demos.create(&PostParams::default(), &panics).await;
    failed.expect_err("the webhook panicked");
    cluster.get::<v1::Demo>("one").await;
    let count = |name: &str, labels: &str| cluster.metric("demo", name, labels);
    let expected = [
        (
            "controller_runtime_webhook_requests_total",
            format!("webhook=\"{MUTATE}\",code=\"200\""),
            2.0,
        ),
        (
            "controller_runtime_webhook_requests_total",
            format!("webhook=\"{VALIDATE}\",code=\"200\""),
            1.0,
        ),
        (
            "controller_runtime_webhook_requests_total",
            format!("webhook=\"{VALIDATE}\",code=\"500\""),
            1.0,
        ),
        (
            "controller_runtime_webhook_latency_seconds_count",
            format!("webhook=\"{VALIDATE}\""),
            2.0,
        ),
        (
            "controller_runtime_webhook_requests_in_flight",
            String::new(),
            0.0,
        ),
        (
            "controller_runtime_webhook_panics_total",
            String::new(),
            1.0,
        ),
        (
            "controller_runtime_conversion_webhook_panics_total",
            String::new(),
            0.0,
        ),
        ("certwatcher_read_certificate_total", String::new(), 1.0),
        (
            "certwatcher_read_certificate_errors_total",
            String::new(),
            0.0,
        ),
    ];
    let text = cluster.metrics("demo");
    for (name, labels, wanted) in expected {
        assert!(text.contains(&format!("\n{name}")), "{name} in {text}");
        let counted = count(name, &labels);
        assert!(
            (counted - wanted).abs() < 0.5,
            "{name}{{{labels}}} is {counted}, not {wanted}"
        );
    }
    let converted = count(
        "controller_runtime_webhook_requests_total",
        "webhook=\"/convert\"",
    );
    assert!(converted >= 1.0, "{text}");
}
