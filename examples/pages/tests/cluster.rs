//! What the guides promise of the operator they build.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::Api;
use kube::api::PostParams;
use pages_operator::{Feed, FeedSpec, Page, PageSpec, operator, v1alpha1};
use serde_json::json;
use windlass_cluster::{TestCluster, hours};

fn page(name: &str, text: &str) -> Page {
    let spec = PageSpec {
        text: text.to_owned(),
        replicas: None,
        public: true,
    };
    Page::new(name, spec)
}

#[windlass_cluster::test]
async fn a_page_is_served(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(page("home", "hello")).await;
    cluster.settle().await;
    let status = cluster.get::<Page>("home").await.status.unwrap();
    assert_eq!(status.ready, 1);
    let content = cluster.get::<ConfigMap>("home-content").await;
    assert_eq!(content.data.unwrap()["index.html"], "hello");
}

#[windlass_cluster::test]
async fn another_text_is_rolled_out(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(page("home", "hello")).await;
    cluster.settle().await;
    let before = cluster.get::<Deployment>("home-server").await;
    cluster
        .patch::<Page>("home", json!({"spec": {"text": "good morning"}}))
        .await;
    cluster.settle().await;
    let after = cluster.get::<Deployment>("home-server").await;
    let generation = |one: &Deployment| one.metadata.generation.unwrap();
    assert_eq!(generation(&after), generation(&before) + 1);
}

#[windlass_cluster::test]
async fn what_is_not_public_has_no_service(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(page("home", "hello")).await;
    cluster.settle().await;
    assert!(cluster.find::<Service>("home-page").await.is_some());
    cluster
        .patch::<Page>("home", json!({"spec": {"public": false}}))
        .await;
    cluster.settle().await;
    assert!(cluster.find::<Service>("home-page").await.is_none());
}

#[windlass_cluster::test]
async fn an_empty_page_is_refused(cluster: TestCluster) {
    cluster.start(operator()).await;
    let pages: Api<Page> = Api::namespaced(cluster.client(), "default");
    let refused = pages
        .create(&PostParams::default(), &page("home", " "))
        .await;
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("spec.text: Required value: a page says something"),
        "{message}"
    );
}

#[windlass_cluster::test]
async fn old_clients_see_the_old_version(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(page("home", "hello")).await;
    assert_eq!(
        cluster.get::<v1alpha1::Page>("home").await.spec.body,
        "hello"
    );
}

#[test]
fn nothing_is_lost_between_versions() {
    assert_eq!(operator().check_conversions(200).unwrap(), 400);
}

#[windlass_cluster::test]
async fn a_feed_waits_for_its_heading(cluster: TestCluster) {
    cluster.start(operator()).await;
    let mut home = page("home", "hello");
    home.metadata.labels = Some([("feed".to_owned(), "news".to_owned())].into());
    cluster.create(home).await;
    let spec: FeedSpec = serde_json::from_value(json!({
        "pages": { "matchLabels": { "feed": "news" } }, "headingFrom": "heading",
    }))
    .unwrap();
    cluster.create(Feed::new("news", spec)).await;
    cluster.settle().await;
    let degraded = |feed: Feed| {
        let conditions = feed.status.unwrap().conditions;
        conditions
            .into_iter()
            .find(|one| one.type_ == "Degraded")
            .unwrap()
    };
    let waiting = degraded(cluster.get("news").await);
    assert_eq!(
        (waiting.status.as_str(), waiting.reason.as_str()),
        ("True", "HeadingNotFound")
    );
    let mut heading = ConfigMap::default();
    heading.metadata.name = Some("heading".to_owned());
    cluster.create(heading).await;
    cluster.settle().await;
    assert_eq!(degraded(cluster.get("news").await).status, "False");
    let list = cluster.get::<ConfigMap>("news-list").await;
    assert_eq!(list.data.unwrap()["pages"], "home");
    cluster.delete::<Feed>("news").await;
    cluster.settle().await;
    assert!(cluster.find::<Feed>("news").await.is_none());
}

#[windlass_cluster::test]
async fn killed_after_any_write_it_ends_the_same(cluster: TestCluster) {
    cluster.start(operator()).await;
    let replays = cluster
        .crash_after_every_write(|cluster| async move {
            cluster.create(page("home", "hello")).await;
            cluster.settle().await;
            cluster
                .patch::<Page>(
                    "home",
                    json!({"spec": {"text": "good morning", "public": false}}),
                )
                .await;
            cluster.settle().await;
        })
        .await;
    assert!(replays >= 5, "{replays}");
}

#[windlass_cluster::test]
async fn settled_it_sends_nothing_for_a_day(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(page("home", "hello")).await;
    cluster.settle().await;
    let before = cluster.requests_of("pages-operator").len();
    cluster.advance(hours(24)).await;
    cluster.restart_operators().await;
    let later = cluster.requests_of("pages-operator").split_off(before);
    assert!(
        !later.iter().any(|request| request.verb.writes()),
        "{later:#?}"
    );
}
