use super::*;
use crate::scratch::Scratch;
use serde_json::{Value, json};

/// Writes a blob and gives its digest, which need not be true.
fn put(layout: &Path, digest: &str, content: &[u8]) -> String {
    let folder = layout.join("blobs/sha256");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(digest), content).expect("a blob");
    format!("sha256:{digest}")
}

/// A layer with these files.
fn layer(scratch: &Path, layout: &Path, digest: &str, files: &[(&str, &str)]) -> Value {
    let folder = scratch.join(format!("layer-{digest}"));
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    let archive = scratch.join(format!("{digest}.tar.gz"));
    let done = std::process::Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(&folder)
        .arg(".")
        .status();
    assert!(done.expect("tar runs").success());
    json!({"digest": put(layout, digest, &fs::read(archive).expect("a layer"))})
}

fn layout(scratch: &Path, folder: &Path) {
    let first = layer(
        scratch,
        folder,
        "aa",
        &[
            ("bin/tool", "one"),
            ("etc/old", "x"),
            ("etc/passwd", "web:x:77:77::/:/\n"),
        ],
    );
    let second = layer(
        scratch,
        folder,
        "bb",
        &[("bin/tool", "two"), ("etc/.wh.old", "")],
    );
    let config = json!({"config": {"Entrypoint": ["/bin/tool"], "Env": ["A=b"], "User": "web"}});
    let config = put(folder, "cc", config.to_string().as_bytes());
    let manifest = json!({"config": {"digest": config}, "layers": [first, second]});
    let manifest = put(folder, "dd", manifest.to_string().as_bytes());
    let index = json!({"manifests": [{
        "digest": manifest,
        "annotations": {"org.opencontainers.image.ref.name": "example.com/tool:1"},
    }]});
    fs::write(folder.join("index.json"), index.to_string()).expect("an index");
}

#[tokio::test]
async fn later_layers_hide_and_replace_what_earlier_ones_have() {
    let scratch = Scratch::new("image");
    let folder = scratch.path().join("images");
    layout(scratch.path(), &folder.join("tool"));
    let images = Images::new(folder, scratch.path().join("unpacked"));
    assert_eq!(
        images
            .find("example.com/other:1")
            .await
            .expect("looked for"),
        None
    );
    let found = images.find("example.com/tool:1").await.expect("looked for");
    let found = found.expect("an image");
    assert_eq!(
        fs::read_to_string(found.root.join("bin/tool")).expect("a file"),
        "two"
    );
    assert!(!found.root.join("etc/old").exists() && !found.root.join("etc/.wh.old").exists());
    assert_eq!(found.user(), Some(77));
    assert_eq!(
        found.config.entrypoint.as_deref(),
        Some(&["/bin/tool".to_owned()][..])
    );
}

#[tokio::test]
async fn an_archive_is_a_layout_too() {
    let scratch = Scratch::new("image-archive");
    let (folder, inside) = (scratch.path().join("images"), scratch.path().join("layout"));
    layout(scratch.path(), &inside);
    fs::create_dir_all(&folder).expect("a folder");
    let archive = folder.join("tool.tar");
    let done = std::process::Command::new("tar")
        .arg("-cf")
        .arg(&archive)
        .arg("-C")
        .arg(&inside)
        .arg(".")
        .status();
    assert!(done.expect("tar runs").success());
    let images = Images::new(folder, scratch.path().join("unpacked"));
    let found = images.find("example.com/tool:1").await.expect("looked for");
    assert!(found.is_some_and(|image| image.root.join("bin/tool").exists()));
}

#[test]
fn names_with_and_without_their_defaults() {
    assert!(is_it("docker.io/library/redis:latest", "redis"));
    assert!(is_it(
        "example.com:5000/tool:latest",
        "example.com:5000/tool"
    ));
    assert!(!is_it("redis:7", "redis"));
}
