use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::runtime::User;
use crate::scratch::Scratch;

/// A program that notes that it was run, and says its version.
fn install(folder: &Path, version: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let text = format!(
        "#!/bin/sh\ntouch {}/was-run\necho tool {version}\n",
        folder.display()
    );
    let path = folder.join("tool");
    fs::write(&path, text).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[tokio::test]
async fn programs_that_a_container_chose_are_not_run_for_their_version() {
    let scratch = Scratch::new("version");
    let (own, other) = (scratch.path().join("own"), scratch.path().join("other"));
    install(&own, "1.2.3");
    install(&other, "6.6.6");
    let table = json!({"tool": {"program": "tool", "versionArgs": ["--version"]}});
    let table: ImageTable = serde_json::from_value(table).expect("a table");
    let programs = Programs::new(table, true, own.to_string_lossy().into_owned());
    let find = async |command: &[&Path], path: &Path| {
        let container = json!({"name": "main", "image": "tool", "command": command});
        let mut environment = Environment::default();
        environment.set("PATH", path.to_string_lossy());
        let launch = Launch {
            pod: Arc::default(),
            container: serde_json::from_value(container).expect("a container"),
            run: 0,
            environment,
            mounts: Vec::new(),
            user: User::default(),
        };
        programs.find(&launch).await.expect("a program")
    };
    // By its path, and by its name in a folder of the container's own choosing.
    for found in [
        find(&[&other.join("tool")], &own).await,
        find(&[Path::new("tool")], &other).await,
        find(&[], &other).await,
    ] {
        assert!(!found.is_of_table);
        assert!(!found.program.image_id.contains("6.6.6"));
    }
    assert!(!other.join("was-run").exists(), "the node ran it");
    let found = find(&[], &own).await;
    assert!(found.is_of_table && found.program.image_id.contains("@1.2.3"));
}
