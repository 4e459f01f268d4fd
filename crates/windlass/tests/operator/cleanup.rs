//! Cleanup: the finalizer exists exactly while it is needed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, FinalizingReconciler, Operator, Result, Watched,
    handle::Reads,
};

use crate::fake::Fake;

const MAP: &str = "/api/v1/namespaces/n/configmaps/a";

struct Door {
    open: Arc<AtomicBool>,
    _maps: Reads<ConfigMap>,
}

impl FinalizingReconciler for Door {
    type Object = ConfigMap;

    async fn cleanup(&self, _: &ConfigMap, _: &Context<ConfigMap>) -> Result<Action> {
        if self.open.load(Ordering::SeqCst) {
            Ok(Action::done())
        } else {
            Ok(Action::waiting("Shut", "the door is shut"))
        }
    }
}

fn operator(open: &Arc<AtomicBool>) -> Operator {
    let open = Arc::clone(open);
    Operator::new("door").controller(Controller::of_existing().reconciler(
        move |declare: &mut Declare<ConfigMap>| Door {
            open: Arc::clone(&open),
            // Any other map that changes is another knock on the door.
            _maps: declare.reads(ConfigMap::triggering_all()),
        },
    ))
}

#[tokio::test(start_paused = true)]
async fn an_object_goes_once_its_cleanup_is_done() {
    let (fake, open) = (Fake::default(), Arc::default());
    fake.put(MAP, &json!({"metadata": {"finalizers": ["other/one"]}}));
    let _running = fake.start(&operator(&open)).await;
    let finalizers = json!(["other/one", "core.windlass.dev/door"]);
    assert_eq!(fake.get(MAP).unwrap()["metadata"]["finalizers"], finalizers);
    fake.delete(MAP);
    fake.settle().await;
    assert_eq!(
        fake.get(MAP).unwrap()["metadata"]["finalizers"],
        finalizers,
        "the cleanup waits"
    );
    open.store(true, Ordering::SeqCst);
    fake.put("/api/v1/namespaces/n/configmaps/knock", &json!({}));
    fake.settle().await;
    assert_eq!(
        fake.get(MAP).unwrap()["metadata"]["finalizers"],
        json!(["other/one"])
    );
}
