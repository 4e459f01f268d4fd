//! Data folders that older releases wrote open with every object. `scripts/data-folder` makes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use windlass_tests::Folder;

/// The archives in `tests/data`.
fn archives() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_archive = |path: &PathBuf| path.to_string_lossy().ends_with(".tar.xz");
    let found: Vec<PathBuf> = paths.filter(is_archive).collect();
    assert!(!found.is_empty(), "there is no data folder to open");
    found
}

/// A data folder of another release, and what its API server listed, by path.
struct Older {
    folder: Folder,
    objects: BTreeMap<String, Value>,
}

impl Older {
    fn new(test: &str, archive: &Path) -> Self {
        let folder = Folder::new(test);
        let extract = "import sys, tarfile; tarfile.open(sys.argv[1]).extractall()";
        let done = Command::new("python3")
            .args(["-c", extract])
            .arg(archive)
            .current_dir(folder.path())
            .status();
        assert!(done.expect("python3 runs").success());
        fs::rename(folder.path().join("data"), folder.path().join(".windlass")).expect("renamed");
        let listing = fs::read_to_string(folder.path().join("objects.jsonl")).expect("a listing");
        let objects = listing.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).expect("a line of JSON");
            let path = line["path"].as_str().expect("a path").to_owned();
            (path, line["object"].take())
        });
        Self {
            objects: objects.collect(),
            folder,
        }
    }

    fn up(&self) -> String {
        self.folder
            .windlass_ok(&["up", "--no-node", "--detach", "--listen", "127.0.0.1:0"])
    }

    /// What is listed now, in the collections that the objects are in.
    fn listed(&self) -> BTreeMap<String, Value> {
        let collections = self.objects.keys().map(|path| collection(path));
        let collections: std::collections::BTreeSet<&str> = collections.collect();
        let mut found = BTreeMap::new();
        for collection in collections {
            let text = self.folder.kubectl(&["get", "--raw", collection]);
            let mut list: Value = serde_json::from_str(&text).expect("a list");
            for item in list["items"].as_array_mut().expect("items") {
                let name = item["metadata"]["name"].as_str().expect("a name");
                found.insert(format!("{collection}/{name}"), item.take());
            }
        }
        found
    }

    /// Fails unless every object is there: those that nothing has written since as they were, to
    /// the byte; of others, what a controller does not write.
    fn is_whole(&self) {
        let now = self.listed();
        let last = self.objects.values().map(revision).max().expect("objects");
        let mut unchanged = 0;
        for (path, before) in &self.objects {
            let Some(object) = now.get(path) else {
                panic!("{path} is gone");
            };
            if revision(object) <= last {
                assert_eq!(object, before, "{path}");
                unchanged += 1;
                continue;
            }
            for field in [
                "uid",
                "creationTimestamp",
                "deletionTimestamp",
                "finalizers",
            ] {
                assert_eq!(
                    object["metadata"][field], before["metadata"][field],
                    "{path}"
                );
            }
            assert_eq!(object["data"], before["data"], "{path}");
            // Leases are renewed, and the roles of the system are those of this release.
            if !path.contains("/leases/") && !path.contains("/rbac.authorization.k8s.io/") {
                assert_eq!(object["spec"], before["spec"], "{path}");
            }
        }
        let all = self.objects.len();
        assert!(
            unchanged * 2 > all,
            "only {unchanged} of {all} are as they were"
        );
    }
}

fn collection(path: &str) -> &str {
    path.rsplit_once('/').expect("a path").0
}

fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).expect("a revision")
}

#[test]
fn data_folder_of_an_older_release_opens_with_every_object() {
    for archive in archives() {
        let older = Older::new("older", &archive);
        assert!(older.objects.len() > 100, "{}", archive.display());
        older.up();
        older.is_whole();
        // It goes on: what waits for a finalizer ends, and what is validated still is.
        let widgets = "/apis/old.example.com/v1/namespaces/shop/widgets/blue";
        assert!(!older.objects[widgets]["metadata"]["deletionTimestamp"].is_null());
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        let edit = ["patch", "widget", "-n", "shop", "--type=merge", "-p"];
        older
            .folder
            .kubectl(&[&edit[..], &[patch, "blue"]].concat());
        older
            .folder
            .kubectl_fails(&["get", "widget", "blue", "-n", "shop"]);
        let large = r#"{"spec":{"size":100}}"#;
        let refused = older
            .folder
            .kubectl_fails(&[&edit[..], &[large, "red"]].concat());
        assert!(refused.contains("too large"), "{refused}");
        // And once more, with what this release has written.
        older.folder.windlass_ok(&["down"]);
        older.up();
        older
            .folder
            .kubectl(&["get", "widget", "red", "-n", "shop"]);
    }
}

#[test]
fn data_folder_with_a_damaged_old_log_opens_with_every_object() {
    for archive in archives() {
        let older = Older::new("damaged", &archive);
        let store = older.folder.path().join(".windlass/store");
        let newer = store.join("00000002.snapshot");
        assert!(newer.exists(), "{} has no snapshot", archive.display());
        let log = store.join("00000001.log");
        let mut bytes = fs::read(&log).expect("a log");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&log, bytes).expect("written");
        older.up();
        older.is_whole();
    }
}
