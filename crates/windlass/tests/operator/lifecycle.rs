//! Starting, crashing, background tasks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use windlass::{
    Error, Operator,
    handle::{Access, Verb},
};

use crate::{
    dependents::{CONTENT, PAGE, operator},
    fake::Fake,
};

#[tokio::test(start_paused = true)]
async fn a_dropped_operator_sends_nothing_more() {
    let fake = Fake::default();
    let running = fake.start(&operator()).await;
    fake.hold_watches();
    fake.put(PAGE, &json!({"spec": {"text": "hello"}}));
    fake.release_watches();
    drop(running);
    fake.settle().await;
    assert!(fake.writes().is_empty());
    let _running = fake.start(&operator()).await;
    assert!(fake.get(CONTENT).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_started_again_and_ends_when_done() {
    let fake = Fake::default();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let operator =
        Operator::new("tasks").task("count", [Access::everything([Verb::Delete])], move |ctx| {
            let counted = Arc::clone(&counted);
            async move {
                let _busy = ctx.environment.activity.busy("counting");
                match counted.fetch_add(1, Ordering::SeqCst) {
                    0 => Err(Error::other("not yet")),
                    1 => panic!("not yet either"),
                    _ => Ok(()),
                }
            }
        });
    let _running = fake.start(&operator).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    let rules: Vec<_> = operator.description().rules().cloned().collect();
    assert_eq!(
        (rules[0].group.as_str(), rules[0].resource.as_str()),
        ("*", "*")
    );
}
