//! What an operator tells of itself: metrics by the names people know, events, its own rights.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass::{Action, Context, Controller, Declare, Operator, Reconciler, Result, handle::Owned};
use windlass_cluster::{Failure, TestCluster, minutes, seconds};

use crate::stage::{map, secret};

struct Maker(Owned<ConfigMap>);

impl Reconciler for Maker {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        self.0.apply(ctx, map(&secret.name_any(), &[])).await?;
        assert_eq!(self.0.list(ctx).await?.len(), 1);
        if let Some(note) = secret.annotations().get("note") {
            ctx.event(windlass::Event::normal("Noted", note));
        }
        Ok(Action::done().requeue_after(minutes(1)))
    }
}

fn maker() -> Operator {
    let declare = |declare: &mut Declare<Secret>| Maker(declare.owns());
    Operator::new("maker").controller(Controller::of_existing().reconciler(declare))
}

/// The series that controller-runtime 0.25 has, without those of webhooks, which
/// `webhooks/observability.rs` looks for.
const SERIES: [&str; 28] = [
    "controller_runtime_active_workers{controller=",
    "controller_runtime_client_consistency_wait_duration_seconds_count{operation=",
    "controller_runtime_max_concurrent_reconciles{controller=",
    "controller_runtime_reconcile_errors_total{controller=",
    "controller_runtime_reconcile_panics_total{controller=",
    "controller_runtime_reconcile_time_seconds_bucket{",
    "controller_runtime_reconcile_time_seconds_count{controller=",
    "controller_runtime_reconcile_timeouts_total{controller=",
    "controller_runtime_reconcile_total{controller=\"secret\",result=\"requeue_after\"}",
    "controller_runtime_reconcile_total{controller=\"secret\",result=\"success\"}",
    "controller_runtime_terminal_reconcile_errors_total{controller=",
    "leader_election_master_status{name=\"maker\"} 1",
    "leader_election_slowpath_total{name=",
    "rest_client_request_duration_seconds_count{verb=",
    "rest_client_rate_limiter_duration_seconds_count{verb=",
    "rest_client_request_retries_total{code=\"500\",verb=\"PATCH\",host=",
    "rest_client_request_size_bytes_count{verb=\"PATCH\"",
    "rest_client_response_size_bytes_count{verb=\"PATCH\"",
    "rest_client_requests_total{code=\"200\",method=\"GET\",host=",
    "rest_client_requests_total{code=\"201\",method=\"PATCH\",host=",
    "workqueue_adds_total{name=\"secret\",controller=\"secret\"}",
    "workqueue_depth{name=\"secret\",controller=\"secret\",priority=\"0\"} 0",
    "workqueue_longest_running_processor_seconds{name=",
    "workqueue_queue_duration_seconds_count{name=",
    "workqueue_retries_total{name=",
    "workqueue_unfinished_work_seconds{name=",
    "workqueue_work_duration_seconds_count{name=",
    "workqueue_work_duration_seconds_bucket{",
];

#[windlass_cluster::test]
async fn metrics_have_the_names_people_know(cluster: TestCluster) {
    let operator = maker();
    let none = SignedDuration::ZERO;
    let _replica = cluster.start_replica(&operator, "a", none).await;
    cluster.delay_watch("maker", "configmaps", seconds(1));
    let hiccup = Failure::with(500).by("maker").on("configmaps").writes();
    cluster.fail(hiccup.times(1));
    cluster.create(secret("one")).await;
    cluster.advance(minutes(2)).await;
    // Somebody touches the lease: the next renewal has to look again.
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::namespaced(cluster.client(), "maker-system");
    let touch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    leases
        .patch("maker", &PatchParams::default(), &touch)
        .await
        .unwrap();
    cluster.advance(seconds(10)).await;
    let text = operator.metrics().text();
    for series in SERIES {
        assert!(
            text.lines().any(|line| line.starts_with(series)),
            "{series} is missing in\n{text}"
        );
    }
    for series in ["objects", "bytes", "staleness_seconds"] {
        let series = format!("windlass_cache_{series}{{resource=\"configmaps\"");
        assert!(text.contains(&series), "{series} is missing in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[windlass_cluster::test]
async fn what_an_operator_may_not_do_is_named_at_once(cluster: TestCluster) {
    cluster.start(maker()).await;
    let client = || cluster.client_as("maker");
    let operator = maker();
    let before = cluster.requests_of("maker").len();
    assert_eq!(operator.missing_rights(&client()).await.unwrap(), [""; 0]);
    assert_eq!(
        cluster.requests_of("maker").len(),
        before + 1,
        "one request if all is well"
    );
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    let less = json!({"rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"]},
    ]});
    let params = PatchParams::default();
    roles
        .patch("maker", &params, &Patch::Merge(less))
        .await
        .unwrap();
    assert_eq!(
        operator.missing_rights(&client()).await.unwrap(),
        [
            "create configmaps",
            "delete configmaps",
            "patch configmaps",
            "list secrets",
            "watch secrets",
            "update secrets/finalizers",
        ]
    );
}

#[windlass_cluster::test]
async fn an_event_that_repeats_is_counted_in_a_series(cluster: TestCluster) {
    cluster.start(maker()).await;
    let mut noted = secret("one");
    noted.metadata.annotations = Some([("note".to_owned(), "look".to_owned())].into());
    cluster.create(noted).await;
    // Every minute the same event.
    cluster.advance(minutes(30)).await;
    let events = cluster.list::<Event>().await;
    let noted = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("Noted"));
    let noted: Vec<_> = noted.collect();
    assert_eq!(noted.len(), 1, "{noted:#?}");
    let series = noted[0].series.as_ref().unwrap();
    assert!((20..=40).contains(&series.count), "{}", series.count);
    let writes = cluster.requests_of("maker");
    let writes = writes
        .iter()
        .filter(|one| one.resource == "events.events.k8s.io");
    assert!(writes.count() <= 9, "not one request for each");
}

#[windlass_cluster::test]
async fn an_event_with_a_long_name_or_note_was_lost(cluster: TestCluster) {
    cluster.start(maker()).await;
    let mut noted = secret(&"n".repeat(253));
    let note = "\u{914d}\u{7f6e}".repeat(500);
    noted.metadata.annotations = Some([("note".to_owned(), note.clone())].into());
    cluster.create(noted).await;
    cluster.settle().await;
    let events = cluster.list::<Event>().await;
    let told = events.iter().find_map(|event| event.note.as_deref());
    let told = told.expect("an event");
    assert!(note.starts_with(told) && told.len() > 1000, "{told}");
}

#[windlass_cluster::test]
async fn an_event_that_meets_a_conflict_is_sent_again(cluster: TestCluster) {
    cluster.start(maker()).await;
    for code in [409, 429, 503] {
        let failure = Failure::with(code).by("maker").on("events.events.k8s.io");
        cluster.fail(failure.times(3));
        let mut noted = secret(&format!("after-{code}"));
        noted.metadata.annotations = Some([("note".to_owned(), "look".to_owned())].into());
        cluster.create(noted).await;
        cluster.settle().await;
    }
    // What will be refused again is not sent again.
    cluster.fail(Failure::with(403).by("maker").on("events.events.k8s.io"));
    let mut noted = secret("refused");
    noted.metadata.annotations = Some([("note".to_owned(), "look".to_owned())].into());
    cluster.create(noted).await;
    cluster.settle().await;
    let events = cluster.list::<Event>().await;
    let noted = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("Noted"));
    let mut regarding: Vec<_> = noted
        .filter_map(|event| event.regarding.as_ref()?.name.as_deref())
        .collect();
    regarding.sort_unstable();
    assert_eq!(regarding, ["after-409", "after-429", "after-503"]);
    let sent = cluster.requests_of("maker");
    let refused = sent.iter().filter(|one| one.code == 403).count();
    assert!(
        (1..=3).contains(&refused),
        "{refused}: once for each reconcile"
    );
}
