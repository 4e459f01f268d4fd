//! The certificate: issued, trusted, renewed without a failed request, repaired.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_cluster::{TestCluster, hours};

use crate::demo::{demo, operator, v1, v2};

async fn secret(cluster: &TestCluster) -> Secret {
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "demo-system");
    secrets
        .get("demo-webhook-certificate")
        .await
        .expect("the secret is there")
}

fn part(secret: &Secret, key: &str) -> Option<String> {
    let ByteString(bytes) = secret.data.as_ref()?.get(key)?;
    String::from_utf8(bytes.clone()).ok()
}

#[windlass_cluster::test]
async fn certificates_are_renewed_without_a_failed_request(cluster: TestCluster) {
    // Short lives, so that many of them pass: an hour is to these what a month is to the usual.
    let short = operator().certificates_valid_for(hours(3), hours(24));
    cluster.start(short).await;
    let first = secret(&cluster).await;
    let (mut serving, mut authorities) = (1, 1);
    let (mut certificate, mut ca) = (part(&first, "tls.crt"), part(&first, "ca.crt"));
    let demos: Api<v2::Demo> = Api::namespaced(cluster.client(), "default");
    // Thirty hours, and every six minutes a request through all three kinds of webhook.
    for round in 0..300 {
        cluster.advance(Duration::from_mins(6)).await;
        let name = format!("demo-{round}");
        let made = demos
            .create(&PostParams::default(), &demo(&name, None))
            .await;
        assert_eq!(made.expect("a request failed").spec.replicas, Some(3));
        assert_eq!(cluster.get::<v1::Demo>(&name).await.spec.size, Some(3));
        cluster.delete::<v2::Demo>(&name).await;
        let now = secret(&cluster).await;
        if part(&now, "tls.crt") != certificate {
            (certificate, serving) = (part(&now, "tls.crt"), serving + 1);
        }
        if part(&now, "ca.crt") != ca {
            (ca, authorities) = (part(&now, "ca.crt"), authorities + 1);
        }
    }
    assert!(serving >= 12, "there were {serving} certificates");
    assert_eq!(authorities, 2, "the CA was handed over once in that time");
}

#[windlass_cluster::test]
async fn a_ca_bundle_that_somebody_breaks_is_repaired(cluster: TestCluster) {
    cluster.start(operator()).await;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client());
    let mut broken = configurations.get("demo").await.expect("configured");
    for webhook in broken.webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle = None;
    }
    configurations
        .replace("demo", &PostParams::default(), &broken)
        .await
        .expect("broken");
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "bm9uc2Vuc2U="}}}}});
    crds.patch(
        "demos.demo.example.com",
        &PatchParams::default(),
        &Patch::Merge(patch),
    )
    .await
    .expect("broken");
    cluster.advance(Duration::from_secs(1)).await;
    cluster.create(demo("one", Some(2))).await;
    assert_eq!(cluster.get::<v1::Demo>("one").await.spec.size, Some(2));
}

#[windlass_cluster::test]
async fn a_certificate_that_is_lost_is_issued_again(cluster: TestCluster) {
    cluster.start(operator()).await;
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "demo-system");
    let patch = Patch::Merge(json!({"data": null}));
    secrets
        .patch("demo-webhook-certificate", &PatchParams::default(), &patch)
        .await
        .expect("emptied");
    cluster.settle().await;
    assert!(part(&secret(&cluster).await, "tls.crt").is_some());
    cluster.create(demo("one", Some(2))).await;
}

/// Changes entries of the Secret, and answers what it is afterwards.
async fn with(cluster: &TestCluster, entries: &[(&str, String)]) -> Secret {
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "demo-system");
    let data: serde_json::Map<_, _> = entries
        .iter()
        .map(|(key, text)| {
            (
                (*key).to_owned(),
                json!(ByteString(text.clone().into_bytes())),
            )
        })
        .collect();
    let patch = Patch::Merge(json!({ "data": data }));
    let params = PatchParams::default();
    let patched = secrets.patch("demo-webhook-certificate", &params, &patch);
    let patched = patched.await.expect("changed");
    cluster.advance(Duration::from_mins(1)).await;
    let now = secret(cluster).await;
    for (key, text) in entries {
        assert_eq!(part(&patched, key).as_ref(), Some(text));
        assert_ne!(
            part(&now, key).as_ref(),
            Some(text),
            "{key} was not replaced"
        );
    }
    now
}

/// A hand edit, or another tool's Secret, used to fail the operator's webhooks for ever.
#[windlass_cluster::test]
async fn unusable_certificate_in_the_secret_is_replaced(cluster: TestCluster) {
    cluster.start(operator()).await;
    let first = secret(&cluster).await;
    let of = |key: &str| part(&first, key).expect("an entry");
    let nonsense = "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n";
    let cases = [
        (
            "key of another certificate",
            vec![("tls.key", of("ca.key"))],
        ),
        ("key of another CA", vec![("ca.key", of("tls.key"))]),
        (
            "no certificate at all",
            vec![("tls.crt", nonsense.to_owned())],
        ),
        (
            "CA that did not sign the certificate",
            vec![("ca.crt", of("tls.crt")), ("ca.key", of("tls.key"))],
        ),
    ];
    for (number, (what, entries)) in cases.into_iter().enumerate() {
        println!("{what}");
        let now = with(&cluster, &entries).await;
        assert!(part(&now, "tls.crt").is_some());
        // Trusted, and shown: a request that passes all three kinds of webhook succeeds.
        let name = format!("demo-{number}");
        cluster.create(demo(&name, Some(2))).await;
        assert_eq!(cluster.get::<v1::Demo>(&name).await.spec.size, Some(2));
    }
}

#[windlass_cluster::test]
async fn a_settled_operator_sends_nothing(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.settle().await;
    let before = cluster.requests_of("demo").len();
    cluster.advance(Duration::from_mins(5)).await;
    let sent = cluster.requests_of("demo");
    let writes: Vec<_> = sent[before..]
        .iter()
        .filter(|request| request.verb != windlass_cluster::Verb::Watch)
        .collect();
    assert!(writes.is_empty(), "{writes:#?}");
}
