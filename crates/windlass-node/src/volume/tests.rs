mod hostile;

use std::os::unix::fs::MetadataExt;

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::*;
use crate::env::{Capacity, Facts, Sources};
use crate::scratch::Scratch;

/// A pod with volumes, and what they are made from.
struct Stage {
    folder: Scratch,
    volumes: Volumes,
    pod: Pod,
    sources: Sources,
    tokens: BTreeMap<Wish, Token>,
}

impl Stage {
    fn new(name: &str, spec: &Value) -> Self {
        let folder = Scratch::new(name);
        let pod = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "shop"}},
            "spec": spec,
        });
        Self {
            volumes: Volumes::new(folder.path()),
            folder,
            pod: serde_json::from_value(pod).expect("a pod"),
            sources: Sources::default(),
            tokens: BTreeMap::new(),
        }
    }

    fn given(&self) -> Given<'_> {
        Given {
            facts: Facts {
                pod: &self.pod,
                pod_ip: "127.64.0.1",
                host_ip: "127.0.0.1",
                node: Capacity::default(),
            },
            sources: &self.sources,
            tokens: &self.tokens,
        }
    }

    fn config_map(&mut self, name: &str, data: &Value) {
        let map = json!({"metadata": {"name": name}, "data": data});
        let map = serde_json::from_value(map).expect("a map");
        self.sources.config_maps.insert(name.to_owned(), map);
    }

    fn secret(&mut self, name: &str, data: &Value) {
        let secret = json!({"metadata": {"name": name}, "data": data});
        let secret = serde_json::from_value(secret).expect("a secret");
        self.sources.secrets.insert(name.to_owned(), secret);
    }

    fn prepare(&self) -> Ready {
        self.volumes.prepare(&self.given()).expect("volumes")
    }

    fn refused(&self) -> String {
        let (name, error) = self.volumes.prepare(&self.given()).expect_err("a refusal");
        format!("{name}: {error}")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("volumes/u1").join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a file")
    }

    fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.path(path)).expect("a file").mode() & 0o7777
    }

    fn mounts(&self, mounts: &Value) -> Result<Vec<Mount>, VolumeError> {
        let container = json!({"name": "main", "volumeMounts": mounts});
        let container = serde_json::from_value(container).expect("a container");
        let mut environment = Environment::default();
        environment.set("POD", "web");
        let ready = self.prepare();
        let mounts = self
            .volumes
            .mounts(&self.pod, &container, 0, &environment, &ready)?;
        Ok(mounts.into_iter().filter(|m| !is_message(m)).collect())
    }
}

#[test]
fn a_config_map_is_files_that_change_all_at_once() {
    let mut stage = Stage::new(
        "config-map",
        &json!({"containers": [], "volumes": [{"name": "config", "configMap": {"name": "settings"}}]}),
    );
    assert_eq!(stage.refused(), "config: configmap \"settings\" not found");
    stage.config_map("settings", &json!({"a": "1", "b": "2"}));
    stage.prepare();
    assert_eq!(
        (stage.read("config/a"), stage.read("config/b")),
        ("1".into(), "2".into())
    );
    assert_eq!(stage.mode("config/a"), 0o644);
    let before = fs::read_link(stage.path("config/..data")).expect("a link");
    stage.volumes.refresh(&stage.given());
    let same = fs::read_link(stage.path("config/..data")).expect("a link");
    assert_eq!(before, same, "nothing has changed");

    // Whoever has the folder open sees the whole of the old or the whole of the new.
    let old = fs::canonicalize(stage.path("config/..data")).expect("a folder");
    let open = fs::File::open(old.join("a")).expect("a file");
    stage.config_map("settings", &json!({"a": "one", "c": "3"}));
    stage.volumes.refresh(&stage.given());
    assert_eq!(
        (stage.read("config/a"), stage.read("config/c")),
        ("one".into(), "3".into())
    );
    assert!(!stage.path("config/b").exists());
    assert!(
        fs::symlink_metadata(stage.path("config/b")).is_err(),
        "no dangling link"
    );
    assert_eq!(io::read_to_string(open).expect("the old file"), "1");
    assert!(!old.exists(), "the old files are removed");
    // Nobody takes away what a container already has.
    stage.sources.config_maps.clear();
    stage.volumes.refresh(&stage.given());
    assert_eq!(stage.read("config/a"), "one");
}

#[test]
fn items_modes_and_what_is_optional() {
    let mut stage = Stage::new(
        "items",
        &json!({"containers": [], "volumes": [
            {"name": "config", "configMap": {"name": "settings", "defaultMode": 0o600, "items": [
                {"key": "a", "path": "deep/er/a"}, {"key": "b", "path": "b", "mode": 0o400}]}},
            {"name": "maybe", "configMap": {"name": "nowhere", "optional": true}},
            {"name": "secret", "secret": {"secretName": "keys", "optional": true, "items": [
                {"key": "gone", "path": "gone"}, {"key": "here", "path": "here"}]}},
        ]}),
    );
    stage.config_map("settings", &json!({"a": "1", "b": "2", "c": "3"}));
    stage.secret("keys", &json!({"here": "eWVz"}));
    stage.prepare();
    assert_eq!(stage.read("config/deep/er/a"), "1");
    assert_eq!(stage.mode("config/deep/er/a"), 0o600);
    assert_eq!(stage.mode("config/b"), 0o400);
    assert!(!stage.path("config/c").exists());
    assert!(stage.path("maybe").is_dir());
    assert_eq!(stage.read("secret/here"), "yes");
    assert!(!stage.path("secret/gone").exists());
    stage.config_map("settings", &json!({"a": "1"}));
    assert_eq!(
        stage.refused(),
        "config: configmap references non-existent config key: b"
    );
}

#[test]
fn the_pod_itself_and_everything_in_one_folder() {
    let mut stage = Stage::new(
        "projected",
        &json!({
            "containers": [{"name": "main", "resources": {"limits": {"cpu": "500m"}}}],
            "volumes": [
            {"name": "pod", "downwardAPI": {"items": [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}},
            ]}},
            {"name": "all", "projected": {"sources": [
                {"configMap": {"name": "settings", "items": [{"key": "a", "path": "a"}]}},
                {"secret": {"name": "keys"}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 700}},
            ]}},
        ]}),
    );
    stage.config_map("settings", &json!({"a": "1"}));
    stage.secret("keys", &json!({"here": "eWVz"}));
    assert!(
        stage.refused().contains("failed to fetch token"),
        "{}",
        stage.refused()
    );
    let wish = wishes(&stage.pod).into_keys().next().expect("a wish");
    let token = |value: &str| Token {
        value: value.to_owned(),
        refresh_at: jiff::Timestamp::MAX,
    };
    stage.tokens.insert(wish.clone(), token("first"));
    stage.prepare();
    assert_eq!(stage.read("pod/labels"), "app=\"shop\"");
    assert_eq!(stage.read("pod/cpu"), "500");
    assert_eq!(stage.read("all/a"), "1");
    assert_eq!(stage.read("all/here"), "yes");
    assert_eq!(stage.read("all/namespace"), "shop");
    assert_eq!(stage.read("all/token"), "first");
    stage.tokens.insert(wish, token("second"));
    stage.volumes.refresh(&stage.given());
    assert_eq!(stage.read("all/token"), "second");
    // Labels may change while the pod runs.
    let labels = stage.pod.metadata.labels.as_mut().expect("labels");
    labels.insert("app".into(), "other".into());
    stage.volumes.refresh(&stage.given());
    assert_eq!(stage.read("pod/labels"), "app=\"other\"");
}

#[test]
fn a_folder_of_the_machine_must_be_what_it_is_said_to_be() {
    let scratch = Scratch::new("host");
    let file = scratch.path().join("file");
    fs::write(&file, "here").expect("a file");
    let volume = |path: &Path, kind: &str| json!({"containers": [], "volumes": [{"name": "host", "hostPath": {"path": path, "type": kind}}]});
    for (path, kind, fits) in [
        (scratch.path().to_owned(), "Directory", true),
        (file.clone(), "Directory", false),
        (file.clone(), "File", true),
        (file.clone(), "", true),
        (scratch.path().join("none"), "Directory", false),
        (scratch.path().join("none"), "File", false),
        (scratch.path().join("made"), "DirectoryOrCreate", true),
        (scratch.path().join("new"), "FileOrCreate", true),
        (file.clone(), "Socket", false),
        (PathBuf::from("/dev/null"), "CharDevice", true),
    ] {
        let stage = Stage::new("host-type", &volume(&path, kind));
        let ready = stage.volumes.prepare(&stage.given());
        assert_eq!(
            ready.is_ok(),
            fits,
            "{} as {kind}: {ready:?}",
            path.display()
        );
    }
    let stage = Stage::new("host-type", &volume(&file, "Directory"));
    assert!(
        stage.refused().contains("hostPath type check failed"),
        "{}",
        stage.refused()
    );
}

#[test]
fn a_claim_needs_its_volume() {
    let mut stage = Stage::new(
        "claim",
        &json!({"containers": [], "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]}),
    );
    assert_eq!(
        stage.refused(),
        "data: persistentvolumeclaim \"disk\" not found"
    );
    let claim = |phase: &str| {
        serde_json::from_value(json!({"spec": {"volumeName": "pv"}, "status": {"phase": phase}}))
            .expect("a claim")
    };
    stage.sources.claims.insert("disk".into(), claim("Pending"));
    assert_eq!(
        stage.refused(),
        "data: persistentvolumeclaim \"disk\" is not bound"
    );
    let disk = stage.folder.path().join("disk");
    let volume = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": "local"}},
        "spec": {"local": {"path": disk}},
    });
    let volume: k8s_openapi::api::core::v1::PersistentVolume =
        serde_json::from_value(volume).expect("a volume");
    for name in ["disk", "web-own"] {
        stage.sources.claims.insert(name.into(), claim("Bound"));
        stage.sources.volumes.insert(name.into(), volume.clone());
    }
    let mounts = stage
        .mounts(&json!([{"name": "data", "mountPath": "/data", "readOnly": true}]))
        .expect("mounts");
    assert_eq!(mounts[0].source, disk);
    assert!(mounts[0].read_only && disk.is_dir());
    // The disk is lost, with what was on it.
    fs::write(disk.join("file"), "x").expect("a file");
    stage.volumes.lose(&stage.pod).expect("lost");
    assert!(disk.is_dir() && !disk.join("file").exists());
}

#[test]
fn a_part_of_a_volume_may_not_lead_out_of_it() {
    let stage = Stage::new(
        "sub-path",
        &json!({"containers": [], "volumes": [{"name": "data", "emptyDir": {}}]}),
    );
    let mounts = stage
        .mounts(&json!([
            {"name": "data", "mountPath": "/z", "subPath": "one/two"},
            {"name": "data", "mountPath": "/b", "subPathExpr": "$(POD)/logs"},
            {"name": "data", "mountPath": "/a"},
        ]))
        .expect("mounts");
    let data = fs::canonicalize(stage.path("data")).expect("a folder");
    let sources: Vec<_> = mounts
        .iter()
        .map(|m| (m.path.as_str(), m.source.clone()))
        .collect();
    assert_eq!(
        sources,
        [
            ("/a", stage.path("data")),
            ("/b", data.join("web/logs")),
            ("/z", data.join("one/two")),
        ]
    );
    assert_eq!(stage.mode("data"), 0o777);
    assert_eq!(stage.mode("data/one/two"), 0o777);
    let refused = |path: Value| {
        stage
            .mounts(&json!([path]))
            .expect_err("a refusal")
            .to_string()
    };
    std::os::unix::fs::symlink("/etc", data.join("escape")).expect("a link");
    assert_eq!(
        refused(json!({"name": "data", "mountPath": "/a", "subPath": "escape"})),
        "subPath \"escape\" leads out of the volume"
    );
    assert_eq!(
        refused(json!({"name": "data", "mountPath": "/a", "subPath": "../../x"})),
        "subPath \"../../x\" leads out of the volume"
    );
    assert_eq!(
        refused(json!({"name": "data", "mountPath": "/a", "subPathExpr": "$(NOBODY)"})),
        "missing value for a variable of subPathExpr \"$(NOBODY)\""
    );
}

#[test]
fn services_are_variables() {
    let service = |spec: Value| -> Service {
        serde_json::from_value(json!({"metadata": {"name": "my-db"}, "spec": spec}))
            .expect("a service")
    };
    let environment = crate::env::of_services(&[service(json!({
        "clusterIP": "10.0.0.7",
        "ports": [{"name": "sql", "port": 5432}, {"name": "admin-ui", "port": 80, "protocol": "UDP"}],
    }))]);
    let all: Vec<(&str, &str)> = environment.iter().collect();
    for expected in [
        ("MY_DB_SERVICE_HOST", "10.0.0.7"),
        ("MY_DB_SERVICE_PORT", "5432"),
        ("MY_DB_SERVICE_PORT_SQL", "5432"),
        ("MY_DB_SERVICE_PORT_ADMIN_UI", "80"),
        ("MY_DB_PORT", "tcp://10.0.0.7:5432"),
        ("MY_DB_PORT_80_UDP", "udp://10.0.0.7:80"),
        ("MY_DB_PORT_80_UDP_PROTO", "udp"),
        ("MY_DB_PORT_80_UDP_PORT", "80"),
        ("MY_DB_PORT_80_UDP_ADDR", "10.0.0.7"),
    ] {
        assert!(all.contains(&expected), "{expected:?} of {all:?}");
    }
    let headless = service(json!({"clusterIP": "None", "ports": [{"port": 1}]}));
    assert_eq!(crate::env::of_services(&[headless]), Environment::default());
}
