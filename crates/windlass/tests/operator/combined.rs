//! Every part of a controller in one: reads, dependents of each shape, a template, a reconciler with
//! a cleanup and one without, and a status.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{FinalizingReconciler, controller::Template, handle::Owned, object, prelude::*};

use crate::fake::Fake;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "combined.dev",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
#[serde(rename_all = "camelCase")]
struct SiteSpec {
    #[serde(default)]
    theme: Option<String>,
    #[serde(default)]
    languages: Vec<String>,
    #[serde(default)]
    public: bool,
    #[serde(default)]
    two_keys: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct SiteStatus {
    colour: Option<String>,
    maps: Vec<String>,
    keys: Vec<String>,
    templates: usize,
    conditions: Vec<Condition>,
}

/// Sees what the controller reads, and is there or not.
fn theme(site: &Site, observed: &Observed) -> Option<ConfigMap> {
    let theme = observed.get::<ConfigMap>(site.spec.theme.clone()?)?;
    Some(object!(ConfigMap {
        metadata: { name: format!("{}-theme", site.name_any()) },
        data: { "colour": &theme.data.as_ref()?["colour"] },
    }))
}

/// Sees the dependent before it, and is any number.
fn translations(site: &Site, observed: &Observed) -> Result<Vec<ConfigMap>> {
    let theme = observed.get::<ConfigMap>(format!("{}-theme", site.name_any()));
    let theme = theme.map_or("plain", |_| "themed");
    let translation = |language: &String| {
        if language == "unknown" {
            return Err(Error::waiting("LanguageNotFound", "no such language yet"));
        }
        Ok(object!(ConfigMap {
            metadata: { name: format!("{}-{language}", site.name_any()) },
            data: { "theme": theme },
        }))
    };
    site.spec.languages.iter().map(translation).collect()
}

/// Is a function of the object alone.
fn robots(site: &Site) -> ConfigMap {
    object!(ConfigMap {
        metadata: { name: format!("{}-robots", site.name_any()) },
        data: { "allow": site.spec.public.to_string() },
    })
}

const SERVICE: &str = r#"
apiVersion: v1
kind: Service
metadata:
  name: "{{ metadata.name }}"
spec:
  selector: { site: "{{ metadata.name }}" }
  ports: [{ port: 80 }]
"#;

/// Applies keys through a handle, and withdraws them from somewhere else in the end.
struct Keys {
    keys: Owned<Secret>,
    withdrawn: Arc<AtomicUsize>,
}

impl FinalizingReconciler for Keys {
    type Object = Site;

    async fn reconcile(&self, site: &Site, ctx: &Context<Site>) -> Result<Action> {
        for nth in 0..=usize::from(site.spec.two_keys) {
            let name = format!("{}-key-{nth}", site.name_any());
            self.keys
                .apply(ctx, object!(Secret { metadata: { name } }))
                .await?;
        }
        Ok(Action::done())
    }

    async fn cleanup(&self, _: &Site, _: &Context<Site>) -> Result<Action> {
        self.withdrawn.fetch_add(1, Ordering::SeqCst);
        Ok(Action::done())
    }
}

/// Counts how often everything before it was complete.
struct Last(Arc<AtomicUsize>);

impl Reconciler for Last {
    type Object = Site;

    async fn reconcile(&self, _: &Site, _: &Context<Site>) -> Result<Action> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Action::done())
    }
}

fn status(site: &Site, observed: &Observed) -> SiteStatus {
    let theme = observed.get::<ConfigMap>(format!("{}-theme", site.name_any()));
    SiteStatus {
        colour: theme.and_then(|map| map.data.as_ref()?.get("colour").cloned()),
        maps: observed
            .owned::<ConfigMap>()
            .map(ResourceExt::name_any)
            .collect(),
        keys: observed
            .owned::<Secret>()
            .map(ResourceExt::name_any)
            .collect(),
        templates: observed.of_templates().count(),
        ..SiteStatus::default()
    }
}

#[derive(Default)]
struct Counts {
    withdrawn: Arc<AtomicUsize>,
    complete: Arc<AtomicUsize>,
}

fn operator(counts: &Counts) -> Operator {
    let withdrawn = Arc::clone(&counts.withdrawn);
    let complete = Arc::clone(&counts.complete);
    Operator::new("sites").controller(
        Controller::of::<Site>()
            .reads(ConfigMap::referenced_by(|site: &Site| {
                site.spec.theme.clone()
            }))
            .dependent(theme)
            .dependent(translations)
            .dependent(robots)
            .template(Template::yaml(SERVICE).when(|site: &Site| site.spec.public))
            .reconciler(move |declare: &mut Declare<Site>| Keys {
                keys: declare.owns(),
                withdrawn: Arc::clone(&withdrawn),
            })
            .reconciler(move |_: &mut Declare<Site>| Last(Arc::clone(&complete)))
            .status(status),
    )
}

const SITE: &str = "/apis/combined.dev/v1/namespaces/n/sites/a";
const DARK: &str = "/api/v1/namespaces/n/configmaps/dark";

/// A site that wants everything there is, and what was sent for it.
async fn full() -> (Fake, Counts, windlass::run::Running, Vec<String>) {
    let (fake, counts) = (Fake::default(), Counts::default());
    fake.put(DARK, &json!({"data": {"colour": "black"}}));
    let spec = json!({"theme": "dark", "languages": ["de", "en"], "public": true, "twoKeys": true});
    fake.put(SITE, &json!({ "spec": spec }));
    let running = fake.start(&operator(&counts)).await;
    let writes = fake.writes();
    (fake, counts, running, writes)
}

/// What was written, without what all of it has in common.
fn short(writes: &[String]) -> Vec<String> {
    let short = |write: &String| {
        write
            .replace("/api/v1/namespaces/n/", "")
            .replace(SITE, "site")
    };
    writes.iter().map(short).collect()
}

fn status_of(fake: &Fake) -> Value {
    let mut status = fake.get(SITE).unwrap()["status"].clone();
    status.as_object_mut().unwrap().remove("conditions");
    status
}

#[tokio::test(start_paused = true)]
async fn parts_of_every_form_run_in_one_reconcile_in_their_order() {
    let (fake, counts, running, writes) = full().await;
    let expected = [
        "PATCH site",
        "PATCH configmaps/a-theme",
        "PATCH configmaps/a-de",
        "PATCH configmaps/a-en",
        "PATCH configmaps/a-robots",
        "PATCH services/a",
        "PATCH secrets/a-key-0",
        "PATCH secrets/a-key-1",
        "PATCH site/status",
    ];
    assert_eq!(short(&writes), expected);
    assert_eq!(
        status_of(&fake),
        json!({
            "colour": "black",
            "maps": ["a-de", "a-en", "a-robots", "a-theme"],
            "keys": ["a-key-0", "a-key-1"],
            "templates": 1,
        })
    );
    let german = fake.get("/api/v1/namespaces/n/configmaps/a-de").unwrap();
    assert_eq!(german["data"]["theme"], "themed");
    assert!(counts.complete.load(Ordering::SeqCst) > 0);

    running.stop().await;
    let _running = fake.start(&operator(&counts)).await;
    assert_eq!(short(&fake.writes()), [""; 0], "nothing after a restart");

    // What is read triggers a reconcile, and reaches the dependent that is computed from it.
    fake.put(DARK, &json!({"data": {"colour": "grey"}}));
    fake.settle().await;
    let expected = ["PATCH configmaps/a-theme", "PATCH site/status"];
    assert_eq!(short(&fake.writes()), expected);
    assert_eq!(status_of(&fake)["colour"], "grey");
}

#[tokio::test(start_paused = true)]
async fn what_each_part_no_longer_applies_is_pruned() {
    let (fake, _counts, _running, _) = full().await;
    let less = json!({"theme": null, "languages": ["en"], "public": false, "twoKeys": false});
    fake.put(SITE, &json!({ "spec": less }));
    fake.settle().await;
    let (mut deletes, other): (Vec<_>, Vec<_>) = short(&fake.writes())
        .into_iter()
        .partition(|write| write.starts_with("DELETE"));
    deletes.sort();
    let expected = [
        "DELETE configmaps/a-de",
        "DELETE configmaps/a-theme",
        "DELETE secrets/a-key-1",
        "DELETE services/a",
    ];
    assert_eq!(deletes, expected);
    let expected = [
        "PATCH configmaps/a-en",
        "PATCH configmaps/a-robots",
        "PATCH site/status",
    ];
    assert_eq!(other, expected);
    assert_eq!(status_of(&fake)["maps"], json!(["a-en", "a-robots"]));
    assert!(fake.get(DARK).is_some(), "what is only read is left alone");
}

#[tokio::test(start_paused = true)]
async fn reconcile_that_one_part_keeps_from_completing_prunes_nothing() {
    let (fake, counts, _running, _) = full().await;
    let complete = counts.complete.load(Ordering::SeqCst);
    let less = json!({"theme": null, "languages": ["unknown"], "public": false, "twoKeys": false});
    fake.put(SITE, &json!({ "spec": less }));
    fake.settle().await;
    let writes = short(&fake.writes());
    assert!(
        !writes.iter().any(|write| write.starts_with("DELETE")),
        "{writes:?}"
    );
    // The other dependents are kept up to date, and the status shows what is there.
    assert!(writes.contains(&"PATCH configmaps/a-robots".to_owned()));
    let status = status_of(&fake);
    assert_eq!(
        status["maps"],
        json!(["a-de", "a-en", "a-robots", "a-theme"])
    );
    assert_eq!(status["keys"], json!(["a-key-0", "a-key-1"]));
    assert_eq!(
        counts.complete.load(Ordering::SeqCst),
        complete,
        "reconcilers run after dependents that succeed"
    );
}

#[tokio::test(start_paused = true)]
async fn deletion_runs_the_cleanup_of_a_controller_with_dependents() {
    let (fake, counts, _running, _) = full().await;
    let finalizers = &fake.get(SITE).unwrap()["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["combined.dev/sites"]));
    fake.delete(SITE);
    fake.settle().await;
    assert!(fake.get(SITE).is_none());
    assert_eq!(counts.withdrawn.load(Ordering::SeqCst), 1);
    let writes = short(&fake.writes());
    assert_eq!(
        writes,
        ["PATCH site"],
        "the garbage collector deletes the rest"
    );
}
