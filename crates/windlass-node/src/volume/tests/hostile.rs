//! What a container with root in it can do to its volumes, and what the node makes of it.

use std::os::unix::fs::symlink;

use super::*;

/// A folder that is none of the pod's, with a file in it.
struct Victim(Scratch);

impl Victim {
    fn new() -> Self {
        let folder = Scratch::new("victim");
        fs::write(folder.path().join("file"), "kept").expect("a file");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// That nothing in it has changed.
    fn check(&self) {
        let names = fs::read_dir(self.path()).expect("the folder is still there");
        let names: Vec<_> = names.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["file"]);
        let file = self.path().join("file");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "kept");
        let mode = fs::metadata(self.path()).expect("a folder").mode();
        assert_ne!(mode & 0o777, 0o777, "its mode was changed");
    }
}

/// A pod with a volume of every sort that is made of files.
fn of_files(name: &str) -> Stage {
    let mut stage = Stage::new(
        name,
        &json!({"containers": [], "volumes": [
            {"name": "map", "configMap": {"name": "settings"}},
            {"name": "secret", "secret": {"secretName": "keys"}},
            {"name": "labels", "downwardAPI": {"items": [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}]}},
        ]}),
    );
    change(&mut stage, "1");
    stage.prepare();
    stage
}

/// Changes what every volume of [`of_files`] is made from.
fn change(stage: &mut Stage, value: &str) {
    stage.config_map("settings", &json!({"key": value}));
    let encoded = if value == "1" { "MQ==" } else { "Mg==" };
    stage.secret("keys", &json!({"key": encoded}));
    let labels = stage.pod.metadata.labels.as_mut().expect("labels");
    labels.insert("app".into(), value.into());
}

const VOLUMES: [&str; 4] = ["map", "secret", "labels", "all"];

#[test]
fn data_link_that_a_container_replaced_removes_nothing_outside() {
    for into in ["/", "..", "."] {
        let (mut stage, victim) = (of_files("data-link"), Victim::new());
        for volume in VOLUMES {
            let data = stage.path(volume).join("..data");
            fs::remove_file(&data).expect("a link");
            // An absolute path, one that leads upwards, and the volume itself.
            let target = match into {
                "/" => victim.path().to_owned(),
                ".." => Path::new("../../../..").join(victim.path().file_name().expect("a name")),
                _ => PathBuf::from("."),
            };
            symlink(target, data).expect("a link");
        }
        change(&mut stage, "2");
        stage.prepare();
        victim.check();
        assert_eq!(stage.read("map/key"), "2");
        assert_eq!(stage.read("labels/labels"), "app=\"2\"");
    }
}

#[test]
fn links_at_the_names_that_the_node_uses_lead_it_nowhere() {
    let victim = Victim::new();
    // The names are those that another pod with the same files has.
    let mut other = of_files("draft-other");
    change(&mut other, "2");
    other.prepare();
    let mut stage = of_files("draft");
    for volume in VOLUMES {
        let draft = fs::read_link(other.path(volume).join("..data")).expect("a link");
        for name in [&*draft.to_string_lossy(), "..data_tmp", "more"] {
            symlink(victim.path(), stage.path(volume).join(name)).expect("a link");
        }
        let key = if volume == "labels" { "labels" } else { "key" };
        fs::remove_file(stage.path(volume).join(key)).expect("a link");
        symlink(victim.path(), stage.path(volume).join(key)).expect("a link");
    }
    change(&mut stage, "2");
    stage.volumes.refresh(&stage.given());
    victim.check();
    for volume in ["map", "secret", "all"] {
        assert_eq!(stage.read(&format!("{volume}/key")), "2", "{volume}");
        assert!(fs::symlink_metadata(stage.path(volume).join("more")).is_err());
    }
    stage.volumes.forget("u1");
    victim.check();
    assert!(!stage.path("").exists());
}

#[test]
fn volumes_made_of_files_are_read_only_whatever_the_pod_says() {
    let stage = of_files("read-only");
    let wanted: Vec<Value> = VOLUMES
        .iter()
        .map(|name| json!({"name": name, "mountPath": format!("/{name}"), "readOnly": false}))
        .collect();
    let mounts = stage.mounts(&wanted.into()).expect("mounts");
    assert_eq!(mounts.len(), VOLUMES.len());
    assert!(mounts.iter().all(|mount| mount.read_only), "{mounts:?}");
}

#[test]
fn files_of_a_volume_cannot_be_named_as_what_the_node_keeps_there() {
    for path in ["..data/x", "..data", "../x", "/etc/x", ".", ""] {
        let items = json!([{"key": "key", "path": path}]);
        let mut stage = Stage::new(
            "names",
            &json!({"containers": [], "volumes": [
                {"name": "map", "configMap": {"name": "settings", "items": items}}]}),
        );
        stage.config_map("settings", &json!({"key": "1"}));
        let refused = stage.refused();
        assert!(refused.contains("leads out of the volume"), "{refused}");
    }
}

#[test]
fn sub_path_through_a_link_makes_nothing_outside() {
    let stage = Stage::new(
        "sub-path-link",
        &json!({"containers": [], "volumes": [{"name": "data", "emptyDir": {}}]}),
    );
    let victim = Victim::new();
    stage.prepare();
    symlink(victim.path(), stage.path("data/link")).expect("a link");
    let name = victim.path().file_name().expect("a name").to_owned();
    let upwards = Path::new("../../../..").join(name);
    symlink(upwards, stage.path("data/upwards")).expect("a link");
    symlink("nowhere", stage.path("data/dangling")).expect("a link");
    for path in [
        "link",
        "link/made",
        "link/a/b",
        "upwards/made",
        "dangling/made",
    ] {
        let mount = json!([{"name": "data", "mountPath": "/x", "subPath": path}]);
        let refused = stage.mounts(&mount).expect_err("a refusal").to_string();
        if !path.starts_with("dangling") {
            let expected = format!("subPath \"{path}\" leads out of the volume");
            assert_eq!(refused, expected);
        }
        victim.check();
    }
    assert!(!stage.path("data/nowhere").exists());
}

#[test]
fn sub_path_through_a_link_that_stays_in_the_volume_is_followed() {
    let mut stage = Stage::new(
        "sub-path-inside",
        &json!({"containers": [], "volumes": [
            {"name": "data", "emptyDir": {}}, {"name": "map", "configMap": {"name": "settings"}}]}),
    );
    stage.config_map("settings", &json!({"key": "1"}));
    stage.prepare();
    fs::create_dir_all(stage.path("data/one/two")).expect("folders");
    symlink("one/two/..", stage.path("data/link")).expect("a link");
    let mounts = stage.mounts(&json!([
        {"name": "data", "mountPath": "/a", "subPath": "link/three"},
        // A file of a ConfigMap is behind two links.
        {"name": "map", "mountPath": "/b", "subPath": "key"},
    ]));
    let mounts = mounts.expect("mounts");
    let real = |path: &str| fs::canonicalize(stage.path(path)).expect("a path");
    assert_eq!(mounts[0].source, real("data/one/three"));
    assert_eq!(mounts[1].source, real("map/key"));
    assert!(mounts[1].read_only);
}

/// The file for the message of a container, once it has been prepared.
fn message(stage: &Stage) -> PathBuf {
    let ready = stage.prepare();
    let container = serde_json::from_value(json!({"name": "main"})).expect("a container");
    let environment = Environment::default();
    let mounts = stage
        .volumes
        .mounts(&stage.pod, &container, 0, &environment, &ready);
    let mut mounts = mounts.expect("mounts");
    mounts.remove(0).source
}

fn last_message(stage: &Stage) -> Option<String> {
    stage.volumes.last_message(&stage.pod, "main", 0, 4096)
}

#[test]
fn termination_message_of_any_size_costs_its_last_bytes() {
    let stage = Stage::new("message", &json!({"containers": []}));
    let path = message(&stage);
    let mut file = fs::OpenOptions::new().append(true).open(&path);
    let file = file.as_mut().expect("a file");
    // Sparse: more than any machine has memory.
    file.set_len(1 << 42).expect("a length");
    io::Write::write_all(file, b"the end").expect("written");
    let said = last_message(&stage).expect("a message");
    assert_eq!(said.len(), 4096);
    assert!(said.ends_with("\0the end"), "{said:?}");
    assert!(!path.exists());
}

#[test]
fn termination_message_is_read_from_a_file_of_its_own_alone() {
    let victim = Victim::new();
    let stage = Stage::new("message-link", &json!({"containers": []}));
    let path = message(&stage);
    fs::remove_file(&path).expect("a file");
    symlink(victim.path().join("file"), &path).expect("a link");
    assert_eq!(last_message(&stage), None);
    // A pipe without a writer.
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo runs").success());
    assert_eq!(last_message(&stage), None);
    // What lies there when a run begins is no place to write to.
    symlink(victim.path().join("file"), &path).expect("a link");
    assert_eq!(message(&stage), path);
    assert_eq!(fs::read_to_string(&path).expect("a file"), "");
    victim.check();
}
