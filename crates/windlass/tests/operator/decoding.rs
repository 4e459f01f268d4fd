//! How often objects are decoded: once for all that look at them within a moment.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use windlass::{
    handle::{Index, Reads},
    prelude::*,
    watch::Select,
};

use crate::fake::Fake;

/// By the one test of this file.
static DECODED: AtomicUsize = AtomicUsize::new(0);

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "decoding.dev",
    version = "v1",
    kind = "Note",
    namespaced,
    status = "NoteStatus"
)]
struct NoteSpec {
    #[serde(deserialize_with = "counted")]
    text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct NoteStatus {
    #[serde(default)]
    length: usize,
}

fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    DECODED.fetch_add(1, Ordering::SeqCst);
    String::deserialize(deserializer)
}

/// Looks at every note, by lists, by an index and one by one.
struct Reader {
    notes: Reads<Note>,
    by_text: Index<Note>,
    seen: Arc<AtomicUsize>,
}

impl Reader {
    fn declare(declare: &mut Declare<ConfigMap>, seen: &Arc<AtomicUsize>) -> Self {
        let notes = declare.reads(Note::triggering_all());
        Self {
            by_text: declare.index(&notes, |note: &Note| [note.spec.text.clone()]),
            notes,
            seen: Arc::clone(seen),
        }
    }
}

impl Reconciler for Reader {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
        let notes = self.notes.list(ctx, Select::own_namespace()).await?;
        for note in &notes {
            let again = self.notes.get(ctx, note.name_any()).await?;
            assert!(again.is_some_and(|again| Arc::ptr_eq(&again, note)));
            let found = self.by_text.find(ctx, &note.spec.text).await?;
            assert!(found.iter().any(|found| Arc::ptr_eq(found, note)));
        }
        self.seen.store(notes.len(), Ordering::SeqCst);
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn version_of_an_object_is_decoded_once_for_indexes_lists_and_reconciles() {
    let (fake, seen) = (Fake::default(), Arc::new(AtomicUsize::new(0)));
    let path = |name: &str| format!("/apis/decoding.dev/v1/namespaces/n/notes/{name}");
    for name in ["a", "b", "c"] {
        fake.put(&path(name), &json!({"spec": {"text": name}}));
    }
    fake.put("/api/v1/namespaces/n/configmaps/m", &json!({}));
    let told = Arc::clone(&seen);
    let operator =
        Operator::new("notes")
            .controller(Controller::of_existing().reconciler(
                move |declare: &mut Declare<ConfigMap>| Reader::declare(declare, &told),
            ))
            .controller(
                Controller::of::<Note>().status(|note: &Note, _: &Observed| {
                    let length = note.spec.text.len();
                    NoteStatus { length }
                }),
            );
    let _running = fake.start(&operator).await;
    assert_eq!(seen.load(Ordering::SeqCst), 3);
    // Each as it was, and as its status left it.
    assert_eq!(fake.writes().len(), 3);
    assert_eq!(DECODED.swap(0, Ordering::SeqCst), 6);

    // A change, and the status that follows.
    fake.put(&path("a"), &json!({"spec": {"text": "longer"}}));
    fake.settle().await;
    assert_eq!(fake.get(&path("a")).unwrap()["status"]["length"], 6);
    assert_eq!(DECODED.swap(0, Ordering::SeqCst), 2);
}
