//! The short form: dependents and a status.

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{Controller, Observed, Operator, Watched};

use crate::fake::Fake;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "test.dev",
    version = "v1",
    kind = "Page",
    namespaced,
    status = "PageStatus"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageSpec {
    text: String,
    #[serde(default)]
    footer: Option<String>,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    style: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PageStatus {
    styles: Vec<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

fn map(page: &Page, suffix: &str, data: &[(&str, &str)]) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("{}-{suffix}", page.name_any())),
            ..ObjectMeta::default()
        },
        data: Some(
            data.iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        ),
        ..ConfigMap::default()
    }
}

fn content(page: &Page) -> ConfigMap {
    let footer = page.spec.footer.as_deref().map(|footer| ("footer", footer));
    let fields: Vec<_> = [("text", page.spec.text.as_str())]
        .into_iter()
        .chain(footer)
        .collect();
    map(page, "content", &fields)
}

fn archive(page: &Page) -> Option<ConfigMap> {
    let archive = || map(page, "archive", &[("text", &page.spec.text)]);
    page.spec.archived.then(archive)
}

fn status(_: &Page, observed: &Observed) -> PageStatus {
    let styles = observed.read::<ConfigMap>().map(ResourceExt::name_any);
    PageStatus {
        styles: styles.collect(),
        conditions: Vec::new(),
    }
}

pub(crate) fn operator() -> Operator {
    Operator::new("pages").controller(
        Controller::of::<Page>()
            .dependent(content)
            .dependent(archive)
            .reads(ConfigMap::referenced_by(|page: &Page| {
                page.spec.style.clone()
            }))
            .status(status),
    )
}

pub(crate) const PAGE: &str = "/apis/test.dev/v1/namespaces/n/pages/a";
pub(crate) const CONTENT: &str = "/api/v1/namespaces/n/configmaps/a-content";
const ARCHIVE: &str = "/api/v1/namespaces/n/configmaps/a-archive";
const APPLY: &str = "PATCH /api/v1/namespaces/n/configmaps/a-content";
const STATUS: &str = "PATCH /apis/test.dev/v1/namespaces/n/pages/a/status";

fn condition(fake: &Fake, kind: &str) -> Value {
    let page = fake.get(PAGE).unwrap();
    let conditions = page["status"]["conditions"].as_array().unwrap();
    conditions
        .iter()
        .find(|one| one["type"] == kind)
        .unwrap()
        .clone()
}

#[tokio::test(start_paused = true)]
async fn one_apply_and_one_status_per_object_and_nothing_after_a_restart() {
    let fake = Fake::default();
    fake.put(PAGE, &json!({"spec": {"text": "hello"}}));
    let running = fake.start(&operator()).await;
    assert_eq!(fake.writes(), [APPLY, STATUS]);
    let content = fake.get(CONTENT).unwrap();
    assert_eq!(content["data"], json!({"text": "hello"}));
    let owner = &content["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("Page"), &json!(true))
    );
    assert_eq!(condition(&fake, "Available")["status"], "True");
    assert_eq!(condition(&fake, "Degraded")["status"], "False");

    running.stop().await;
    let _running = fake.start(&operator()).await;
    assert!(fake.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_and_what_others_add_is_left_alone() {
    let fake = Fake::default();
    fake.put(PAGE, &json!({"spec": {"text": "hello"}}));
    let _running = fake.start(&operator()).await;
    fake.writes();
    fake.put(CONTENT, &json!({"data": {"text": "bye", "other": "stays"}}));
    fake.settle().await;
    assert_eq!(fake.writes(), [APPLY]);
    assert_eq!(
        fake.get(CONTENT).unwrap()["data"],
        json!({"text": "hello", "other": "stays"})
    );
    fake.delete(CONTENT);
    fake.settle().await;
    assert_eq!(fake.writes(), [APPLY]);
    assert!(fake.get(CONTENT).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_field_no_longer_wanted_is_given_up_by_one_apply() {
    let fake = Fake::default();
    fake.put(
        PAGE,
        &json!({"spec": {"text": "hello", "footer": "the end"}}),
    );
    let running = fake.start(&operator()).await;
    running.stop().await;
    fake.put(PAGE, &json!({"spec": {"footer": null}}));
    fake.writes();
    let _running = fake.start(&operator()).await;
    assert_eq!(fake.writes(), [APPLY, STATUS]);
    assert_eq!(fake.get(CONTENT).unwrap()["data"], json!({"text": "hello"}));
}

#[tokio::test(start_paused = true)]
async fn a_dependent_not_wanted_any_more_is_deleted_also_after_a_restart() {
    let fake = Fake::default();
    fake.put(PAGE, &json!({"spec": {"text": "hello", "archived": true}}));
    let running = fake.start(&operator()).await;
    assert!(fake.get(ARCHIVE).is_some());
    running.stop().await;
    fake.put(PAGE, &json!({"spec": {"archived": false}}));
    fake.writes();
    let _running = fake.start(&operator()).await;
    let writes = fake.writes();
    assert_eq!(
        writes[0],
        "DELETE /api/v1/namespaces/n/configmaps/a-archive"
    );
    assert!(fake.get(ARCHIVE).is_none() && fake.get(CONTENT).is_some());
}

#[tokio::test(start_paused = true)]
async fn anothers_object_is_refused_until_it_goes() {
    let fake = Fake::default();
    fake.put(CONTENT, &json!({"data": {"mine": "yes"}}));
    fake.put(PAGE, &json!({"spec": {"text": "hello"}}));
    let _running = fake.start(&operator()).await;
    assert_eq!(fake.get(CONTENT).unwrap()["data"], json!({"mine": "yes"}));
    let degraded = condition(&fake, "Degraded");
    assert_eq!(
        (&degraded["status"], &degraded["reason"]),
        (&json!("True"), &json!("NotOurs"))
    );
    let event = "POST /apis/events.k8s.io/v1/namespaces/n/events";
    assert!(fake.writes().iter().any(|write| write == event));
    fake.delete(CONTENT);
    fake.settle().await;
    assert_eq!(fake.get(CONTENT).unwrap()["data"], json!({"text": "hello"}));
    assert_eq!(condition(&fake, "Degraded")["status"], "False");
}

#[tokio::test(start_paused = true)]
async fn what_is_read_wakes_those_who_name_it_also_before_it_exists() {
    let fake = Fake::default();
    fake.put(
        PAGE,
        &json!({"spec": {"text": "hello", "style": "style-dark"}}),
    );
    let _running = fake.start(&operator()).await;
    assert_eq!(fake.get(PAGE).unwrap()["status"]["styles"], json!([]));
    fake.writes();
    fake.put("/api/v1/namespaces/n/configmaps/style-dark", &json!({}));
    fake.put("/api/v1/namespaces/n/configmaps/style-light", &json!({}));
    fake.settle().await;
    assert_eq!(
        fake.get(PAGE).unwrap()["status"]["styles"],
        json!(["style-dark"])
    );
    assert_eq!(fake.writes(), [STATUS]);
}
