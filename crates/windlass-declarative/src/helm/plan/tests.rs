//! Releases planned against a world of maps: what a cluster would hold.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_charts::File;

use super::*;
use crate::Ready;

const HOOK: &str = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}-hook\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-delete-policy: {{ .Values.policy | default \"before-hook-creation\" }}\n";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  text: {{ .Values.text | quote }}\n  password: {{ randAlphaNum 8 }}\n";

fn chart(files: &[(&str, &str)]) -> Chart {
    let file = |(name, text): &(&str, &str)| File {
        name: (*name).to_owned(),
        data: (*text).into(),
    };
    let mut all = vec![file(&(
        "Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    ))];
    all.extend(files.iter().map(file));
    Chart::from_files(all).unwrap()
}

struct World {
    chart: Chart,
    parent: Value,
    history: BTreeMap<u64, Release>,
    objects: BTreeMap<String, Value>,
    now: Timestamp,
    /// How jobs end; none while they run.
    jobs: Option<&'static str>,
}

fn key(object: &Value) -> String {
    format!(
        "{} {}",
        object["kind"].as_str().unwrap(),
        object["metadata"]["name"].as_str().unwrap()
    )
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        Self {
            chart: chart(files),
            parent: json!({
                "metadata": {"name": "shop", "namespace": "default", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"text": "one"},
            }),
            history: BTreeMap::new(),
            objects: BTreeMap::new(),
            now: "2026-01-02T00:00:00Z".parse().unwrap(),
            jobs: Some("Complete"),
        }
    }

    fn plan(&self) -> Result<Plan, PlanError> {
        let history: Vec<Release> = self.history.values().cloned().collect();
        plan(&Situation {
            parent: &self.parent,
            chart: &self.chart,
            overrides: &Overrides::default(),
            history: &history,
            capabilities: &Capabilities::default(),
            lookup: None,
            live: &|object| self.objects.get(&key(object)).cloned().map(Arc::new),
            now: self.now,
            retry_after: Duration::from_mins(1),
        })
    }

    fn write(&mut self, release: &Release) {
        // What is written is read again.
        let release = Release::from_secret(&release.secret()).unwrap();
        self.history.insert(release.revision(), release);
    }

    /// One reconcile that ends after this many writes. Says how many there were.
    fn reconcile(&mut self, mut writes: usize) -> usize {
        let plan = self.plan().unwrap();
        let all = writes;
        macro_rules! write {
            () => {
                if writes == 0 {
                    return all;
                }
                writes -= 1;
            };
        }
        for release in &plan.before {
            write!();
            self.write(release);
        }
        let wanted: Vec<String> = plan
            .stages
            .iter()
            .flatten()
            .map(|one| key(&one.object))
            .collect();
        for stage in &plan.stages {
            for one in stage {
                let key = key(&one.object);
                let mut object = one.object.clone();
                let old = self.objects.get(&key);
                if let Some(old) = old {
                    object["status"] = old["status"].clone();
                }
                if old != Some(&object) {
                    write!();
                    object["status"] = json!(null);
                    self.objects.insert(key, object);
                }
            }
            for one in stage.iter().filter(|one| one.ready == Ready::ByKind) {
                let job = self.objects.get_mut(&key(&one.object)).unwrap();
                let Some(end) = self.jobs else {
                    return all - writes;
                };
                job["status"] =
                    json!({"conditions": [{"type": end, "status": "True", "message": "because"}]});
                if end == "Failed" {
                    return all - writes;
                }
            }
        }
        let gone: Vec<String> = self
            .objects
            .keys()
            .filter(|key| !wanted.contains(key))
            .cloned()
            .collect();
        for key in gone {
            write!();
            self.objects.remove(&key);
        }
        for release in &plan.after {
            write!();
            self.write(release);
        }
        for revision in &plan.forget {
            write!();
            self.history.remove(revision);
        }
        if self.parent["status"] != plan.done_status {
            write!();
            self.parent["status"] = plan.done_status;
        }
        all - writes
    }

    /// Reconciles until nothing is written any more.
    fn settle(&mut self) {
        for _ in 0..20 {
            if self.reconcile(usize::MAX) == 0 {
                return;
            }
        }
        panic!("it never settles: {:?}", self.statuses());
    }

    fn statuses(&self) -> Vec<String> {
        let show =
            |release: &Release| format!("{} {}", release.revision(), release.status().name());
        self.history.values().map(show).collect()
    }

    fn conditions(&self) -> Vec<String> {
        let conditions = self.parent["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter();
        let show = |one: &Value| {
            format!(
                "{}={} {}",
                one["type"].as_str().unwrap(),
                one["status"].as_str().unwrap(),
                one["reason"].as_str().unwrap_or_default()
            )
        };
        conditions.map(show).collect()
    }
}

#[test]
fn release_is_installed_kept_and_upgraded() {
    let mut world = World::new(&[
        ("templates/map.yaml", MAP),
        ("templates/NOTES.txt", "hello"),
    ]);
    let first = world.plan().unwrap();
    assert_eq!(
        first.before[0].status(),
        Stage::PendingInstall,
        "written before the first object"
    );
    world.settle();
    assert_eq!(world.statuses(), ["1 deployed"]);
    assert_eq!(
        world.conditions(),
        ["Initialized=True ", "Deployed=True InstallSuccessful"]
    );
    assert_eq!(world.parent["status"]["conditions"][1]["message"], "hello");
    let map = world.objects["ConfigMap shop"].clone();
    assert_eq!(
        map["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        "Helm"
    );
    world.parent["spec"]["text"] = json!("two");
    world.settle();
    assert_eq!(world.statuses(), ["1 superseded", "2 deployed"]);
    assert_eq!(world.conditions()[1], "Deployed=True UpgradeSuccessful");
    let upgraded = &world.objects["ConfigMap shop"];
    assert_eq!(upgraded["data"]["text"], "two");
    assert_eq!(
        upgraded["data"]["password"], map["data"]["password"],
        "random values stay"
    );
}

#[test]
fn crash_after_every_write_ends_the_same() {
    let files = [("templates/map.yaml", MAP), ("templates/hook.yaml", HOOK)];
    for first in 0..8 {
        for second in 0..8 {
            let mut world = World::new(&files);
            world.reconcile(first);
            world.reconcile(second);
            world.settle();
            assert_eq!(world.statuses(), ["1 deployed"], "{first} {second}");
            world.parent["spec"]["text"] = json!("two");
            world.reconcile(first);
            world.reconcile(second);
            world.settle();
            assert_eq!(
                world.statuses(),
                ["1 superseded", "2 deployed"],
                "{first} {second}"
            );
            assert_eq!(world.objects.len(), 2, "{:?}", world.objects.keys());
        }
    }
}

#[test]
fn values_that_change_while_pending_begin_another_revision() {
    let mut world = World::new(&[("templates/map.yaml", MAP), ("templates/hook.yaml", HOOK)]);
    world.jobs = None;
    world.reconcile(usize::MAX);
    assert!(
        !world.objects.contains_key("ConfigMap shop"),
        "the hook is not done"
    );
    world.parent["spec"]["text"] = json!("two");
    world.reconcile(usize::MAX);
    assert_eq!(world.statuses(), ["1 failed", "2 pending-install"]);
    world.jobs = Some("Complete");
    world.settle();
    assert_eq!(world.statuses(), ["1 failed", "2 deployed"]);
}

#[test]
fn hook_that_is_done_goes_or_stays_by_its_policy() {
    for (policy, stays) in [("before-hook-creation", true), ("hook-succeeded", false)] {
        let mut world = World::new(&[("templates/map.yaml", MAP), ("templates/hook.yaml", HOOK)]);
        world.parent["spec"]["policy"] = json!(policy);
        world.settle();
        assert_eq!(
            world.objects.contains_key("Job shop-hook"),
            stays,
            "{policy}"
        );
        world.objects.remove("Job shop-hook");
        world.settle();
        assert!(
            !world.objects.contains_key("Job shop-hook"),
            "a hook is not repaired"
        );
    }
}

#[test]
fn failed_install_is_uninstalled_and_tried_again_later() {
    let mut world = World::new(&[("templates/map.yaml", MAP), ("templates/hook.yaml", HOOK)]);
    world.jobs = Some("Failed");
    world.reconcile(usize::MAX);
    world.settle();
    assert_eq!(world.statuses(), ["1 failed"]);
    assert!(world.objects.is_empty());
    assert_eq!(
        world.conditions(),
        ["Initialized=True ", "ReleaseFailed=True InstallError"]
    );
    assert_eq!(world.plan().unwrap().again, Some(Duration::from_mins(1)));
    world.jobs = Some("Complete");
    world.now = "2026-01-02T00:01:00Z".parse().unwrap();
    world.settle();
    assert_eq!(world.statuses(), ["1 failed", "2 deployed"]);
    assert_eq!(
        world.conditions(),
        ["Initialized=True ", "Deployed=True UpgradeSuccessful"]
    );
}

#[test]
fn failed_upgrade_is_rolled_back_and_not_repeated_at_once() {
    let mut world = World::new(&[("templates/map.yaml", MAP), ("templates/hook.yaml", HOOK)]);
    world.settle();
    world.jobs = Some("Failed");
    world.parent["spec"]["text"] = json!("two");
    world.reconcile(usize::MAX);
    world.settle();
    assert_eq!(world.statuses(), ["1 superseded", "2 failed", "3 deployed"]);
    assert_eq!(world.objects["ConfigMap shop"]["data"]["text"], "one");
    assert!(
        world
            .conditions()
            .contains(&"ReleaseFailed=True UpgradeError".to_owned()),
        "{:?}",
        world.conditions()
    );
    assert_eq!(world.plan().unwrap().again, Some(Duration::from_mins(1)));
    // What made it fail is taken back.
    world.parent["spec"]["text"] = json!("one");
    world.settle();
    assert_eq!(world.statuses(), ["1 superseded", "2 failed", "3 deployed"]);
    assert_eq!(
        world.conditions(),
        ["Initialized=True ", "Deployed=True UpgradeSuccessful"]
    );
}

#[test]
fn annotations_that_ask_for_replacement_are_answered_by_an_event() {
    let ignored = |plan: &Plan, wanted: &str| {
        let shown = format!("{:?}", plan.events);
        shown.contains("AnnotationIgnored") && shown.contains(wanted)
    };
    let mut world = World::new(&[("templates/map.yaml", MAP), ("templates/hook.yaml", HOOK)]);
    world.settle();
    world.parent["spec"]["text"] = json!("two");
    assert!(world.plan().unwrap().events.is_empty());
    world.parent["metadata"]["annotations"] = json!({
        "helm.sdk.operatorframework.io/upgrade-force": "true",
        "helm.sdk.operatorframework.io/rollback-force": "false",
    });
    assert!(ignored(&world.plan().unwrap(), "upgrade-force: true"));
    world.jobs = Some("Failed");
    world.reconcile(usize::MAX);
    assert!(ignored(&world.plan().unwrap(), "rollback-force: false"));
}

#[test]
fn definitions_are_served_before_anything_else_and_then_left_alone() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: toys}\n";
    let mut world = World::new(&[("crds/toys.yaml", crd), ("templates/map.yaml", MAP)]);
    let names = |plan: &Plan| -> Vec<String> {
        let wanted = plan.stages.iter().flatten();
        wanted.map(|one| key(&one.object)).collect()
    };
    assert_eq!(
        names(&world.plan().unwrap()),
        ["CustomResourceDefinition toys"]
    );
    world.reconcile(usize::MAX);
    assert_eq!(world.statuses(), ["1 pending-install"]);
    let served = json!({"conditions": [{"type": "Established", "status": "True"}]});
    world
        .objects
        .get_mut("CustomResourceDefinition toys")
        .unwrap()["status"] = served;
    let plan = world.plan().unwrap();
    assert_eq!(names(&plan), ["ConfigMap shop"]);
    assert!(plan.before.is_empty());
}

#[test]
fn history_is_kept_up_to_ten() {
    let mut world = World::new(&[("templates/map.yaml", MAP)]);
    for text in 0..15 {
        world.parent["spec"]["text"] = json!(text.to_string());
        world.settle();
    }
    assert_eq!(world.history.len(), 10);
    assert_eq!(world.statuses().last().unwrap(), "15 deployed");
}

#[test]
fn release_of_another_chart_is_an_error() {
    let mut world = World::new(&[("templates/map.yaml", MAP)]);
    world.settle();
    world.chart.metadata.name = "other".to_owned();
    assert_eq!(
        world.plan().unwrap_err().to_string(),
        "duplicate release name: found existing release with name \"shop\" for chart \"web\""
    );
}

#[test]
fn removal_runs_hooks_around_the_deletion() {
    let hook = |event: &str| {
        HOOK.replace("pre-install,pre-upgrade", event)
            .replace("-hook\n", &format!("-{event}\n"))
    };
    let (before, after) = (hook("pre-delete"), hook("post-delete"));
    let mut world = World::new(&[
        ("templates/map.yaml", MAP),
        ("templates/a.yaml", &before),
        ("templates/b.yaml", &after),
    ]);
    world.settle();
    let names = |removal: &Removal| -> Vec<String> {
        removal
            .stages
            .iter()
            .flatten()
            .map(|one| key(&one.object))
            .collect()
    };
    let step = |world: &mut World, are_gone: bool| {
        let history: Vec<Release> = world.history.values().cloned().collect();
        let live = |object: &Value| world.objects.get(&key(object)).cloned().map(Arc::new);
        let removal = removal(&history, &live, world.now, are_gone).unwrap();
        for release in &removal.before {
            world.write(release);
        }
        for one in removal
            .stages
            .iter()
            .flatten()
            .filter(|one| one.ready == Ready::ByKind)
        {
            let mut job = one.object.clone();
            job["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
            world.objects.insert(key(&job), job);
        }
        removal
    };
    let removal = step(&mut world, false);
    assert_eq!(names(&removal), ["Job shop-pre-delete", "ConfigMap shop"]);
    assert_eq!(world.statuses(), ["1 uninstalling"]);
    let removal = step(&mut world, false);
    assert_eq!((names(&removal).len(), removal.done), (0, false));
    world.objects.remove("ConfigMap shop");
    let removal = step(&mut world, true);
    assert_eq!(
        (names(&removal), removal.done),
        (vec!["Job shop-post-delete".to_owned()], false)
    );
    let removal = step(&mut world, true);
    assert!(removal.done);
}
