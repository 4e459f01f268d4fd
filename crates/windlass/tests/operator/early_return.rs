//! A reconcile that returns early: only one that says it is done loses what it did not apply.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Error, Operator, Reconciler, Result, handle::Owned,
    object, testing::Environment,
};

use crate::fake::Fake;

const MAP: &str = "/api/v1/namespaces/n/configmaps/a";
const FIRST: &str = "/api/v1/namespaces/n/secrets/first";
const SECOND: &str = "/api/v1/namespaces/n/secrets/second";

/// Applies two secrets, or one and returns then, as the map says.
struct Pair {
    secrets: Owned<Secret>,
    runs: Arc<AtomicUsize>,
}

impl Reconciler for Pair {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let first = object!(Secret { metadata: { name: "first" } });
        self.secrets.apply(ctx, first).await?;
        let hour = Duration::from_hours(1);
        match map.data.as_ref().and_then(|data| data.get("returns")) {
            None => {}
            Some(how) => match how.as_str() {
                "waiting" => return Ok(Action::waiting("NotYet", "not yet")),
                "waiting with a timer" => {
                    return Ok(Action::waiting("NotYet", "not yet").requeue_after(hour));
                }
                "waiting as an error" => return Err(Error::waiting("NotYet", "not yet")),
                "in progress" => return Ok(Action::in_progress(hour)),
                "refused" => return Err(Error::terminal("no")),
                "done" => return Ok(Action::done()),
                "done with a timer" => return Ok(Action::done().requeue_after(hour)),
                other => unreachable!("{other}"),
            },
        }
        let second = object!(Secret { metadata: { name: "second" } });
        self.secrets.apply(ctx, second).await?;
        Ok(Action::done())
    }
}

fn operator(runs: &Arc<AtomicUsize>) -> Operator {
    let runs = Arc::clone(runs);
    Operator::new("pairs").controller(Controller::of_existing().reconciler(
        move |declare: &mut Declare<ConfigMap>| Pair {
            secrets: declare.owns(),
            runs: Arc::clone(&runs),
        },
    ))
}

/// Lets a first reconcile apply both, and a second return early. The deletes that followed, and how
/// often it was reconciled.
async fn returns(how: &str) -> (Vec<String>, usize) {
    let (fake, runs) = (Fake::default(), Arc::default());
    fake.put(MAP, &json!({}));
    let _running = operator(&runs).start(fake.client(), Environment::default());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(fake.get(FIRST).is_some() && fake.get(SECOND).is_some());
    fake.writes();
    runs.store(0, Ordering::SeqCst);
    fake.put(MAP, &json!({"data": {"returns": how}}));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(fake.get(FIRST).is_some());
    let writes = fake.writes().into_iter();
    let deletes = writes.filter(|write| write.starts_with("DELETE"));
    (deletes.collect(), runs.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn early_return_that_is_not_done_prunes_nothing_and_does_not_loop() {
    for how in [
        "waiting",
        "waiting with a timer",
        "waiting as an error",
        "in progress",
        "refused",
    ] {
        assert_eq!(returns(how).await, (Vec::new(), 1), "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn reconcile_that_is_done_prunes_what_it_did_not_apply() {
    for how in ["done", "done with a timer"] {
        let (deletes, runs) = returns(how).await;
        assert_eq!(deletes, [format!("DELETE {SECOND}")], "{how}");
        // Once for the change, once for the deletion that it led to.
        assert!((1..=2).contains(&runs), "{how}: {runs} reconciles");
    }
}

#[tokio::test(start_paused = true)]
async fn timer_of_a_reconcile_that_waits_triggers_the_next_one() {
    let (fake, runs) = (Fake::default(), Arc::default());
    fake.put(MAP, &json!({"data": {"returns": "waiting with a timer"}}));
    let _running = operator(&runs).start(fake.client(), Environment::default());
    tokio::time::sleep(Duration::from_mins(59)).await;
    let before = runs.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(runs.load(Ordering::SeqCst), before + 1);
}
