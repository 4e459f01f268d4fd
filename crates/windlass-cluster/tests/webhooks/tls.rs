//! The same over TLS on a real clock: by URL, registered and taken off; and with a certificate
//! from a folder.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};
use windlass::testing::{Certificates, Environment, WebhookServing};
use windlass_cluster::{Cluster, ClusterConfig};

use crate::demo::{demo, operator, v1, v2};

/// A cluster on a port of this machine, with a folder of its own.
async fn cluster(name: &str) -> (Cluster, PathBuf) {
    let folder = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
    let config = ClusterConfig {
        data_dir: folder.clone(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        names: Vec::new(),
        in_memory: false,
        controllers: true,
        node: None,
    };
    (
        Cluster::start(config).await.expect("the cluster starts"),
        folder,
    )
}

async fn install(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in operator().crds() {
        crds.create(&PostParams::default(), &crd)
            .await
            .expect("installed");
    }
}

/// Asks until the answer is as wanted: what a server on another port does takes its time.
async fn until<T, F: Future<Output = Option<T>>>(mut ask: impl FnMut() -> F) -> T {
    let wait = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait)
        .await
        .expect("it happens in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_run_registers_itself_and_takes_itself_off() {
    let (cluster, folder) = cluster("local").await;
    let client = cluster.client().await.expect("a client");
    install(&client).await;
    let environment = Environment {
        webhooks: WebhookServing::Url {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            host: Ipv4Addr::LOCALHOST.to_string(),
        },
        ..Environment::default()
    };
    let running = operator().start(client.clone(), environment);
    running.synced().await;
    let configured: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    until(|| async { configured.get_opt("demo-local").await.expect("asked") }).await;
    let demos: Api<v2::Demo> = Api::namespaced(client.clone(), "default");
    let made = until(|| async {
        let made = demos
            .create(&PostParams::default(), &demo("one", None))
            .await;
        made.ok()
    })
    .await;
    assert_eq!(made.spec.replicas, Some(3));
    let refused = demos
        .create(&PostParams::default(), &demo("two", Some(0)))
        .await;
    assert!(
        refused
            .expect_err("allowed")
            .to_string()
            .contains("must be at least 1")
    );
    let old: Api<v1::Demo> = Api::namespaced(client.clone(), "default");
    let shown = until(|| async { old.get("one").await.ok() }).await;
    assert_eq!(shown.spec.size, Some(3));
    running.stop().await;
    assert!(
        configured
            .get_opt("demo-local")
            .await
            .expect("asked")
            .is_none()
    );
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    assert!(
        mutating
            .get_opt("demo-local")
            .await
            .expect("asked")
            .is_none()
    );
    let unjudged = demos
        .create(&PostParams::default(), &demo("three", Some(0)))
        .await;
    unjudged.expect("nobody is asked any more");
    cluster.stop().await;
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_from_a_folder_is_loaded_again_when_it_changes() {
    use windlass_apiserver::pki::Authority;
    let (cluster, folder) = cluster("folder").await;
    let client = cluster.client().await.expect("a client");
    let certificates = folder.join("certificates");
    std::fs::create_dir_all(&certificates).expect("a folder");
    let write = |authority: &Authority| {
        let made = authority
            .server("demo", &[Ipv4Addr::LOCALHOST.into()], &["localhost"])
            .expect("a certificate");
        std::fs::write(certificates.join("tls.crt"), made.certificate).expect("written");
        std::fs::write(certificates.join("tls.key"), made.key).expect("written");
        let ca = &authority.pem().certificate;
        std::fs::write(certificates.join("ca.crt"), ca).expect("written");
    };
    let (first, second) = (
        Authority::create().expect("a CA"),
        Authority::create().expect("a CA"),
    );
    write(&first);
    let port = {
        let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        free.local_addr().expect("an address").port()
    };
    let environment = Environment {
        webhooks: WebhookServing::Service {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            namespace: Some("demo-system".to_owned()),
            certificates: Certificates::Folder(certificates.clone()),
        },
        ..Environment::default()
    };
    install(&client).await;
    let running = operator().start(client.clone(), environment);
    until(|| async { trusts(&first, port).await.then_some(()) }).await;
    assert!(!trusts(&second, port).await);
    write(&second);
    until(|| async { trusts(&second, port).await.then_some(()) }).await;
    // And the API server is told whom to trust.
    let crds: Api<CustomResourceDefinition> = Api::all(client);
    until(|| async {
        let crd = crds.get("demos.demo.example.com").await.ok()?;
        let config = crd.spec.conversion?.webhook?.client_config?;
        let bundle = String::from_utf8(config.ca_bundle?.0).ok()?;
        (bundle == second.pem().certificate).then_some(())
    })
    .await;
    running.stop().await;
    cluster.stop().await;
    let _ = std::fs::remove_dir_all(folder);
}

/// Whether the server on this port shows a certificate of this CA.
async fn trusts(authority: &windlass_apiserver::pki::Authority, port: u16) -> bool {
    use windlass_apiserver::webhook::{TlsTransport, WebhookCall, WebhookTarget, WebhookTransport};
    let call = WebhookCall {
        target: WebhookTarget::Url(format!("https://127.0.0.1:{port}/")),
        address: ("127.0.0.1".to_owned(), port),
        server_name: "127.0.0.1".to_owned(),
        path_and_query: "/".to_owned(),
        ca_bundle: authority.pem().certificate.clone().into_bytes(),
        body: "{}".into(),
    };
    TlsTransport::default().post(&call).await.is_ok()
}
