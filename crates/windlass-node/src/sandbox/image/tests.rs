mod hostile;

use super::*;
use crate::scratch::Scratch;
use serde_json::{Value, json};
use tar::{EntryType, Header};

/// What the image of these tests is called.
const NAME: &str = "example.com/tool:1";

/// Writes a blob and gives its descriptor.
fn put(layout: &Path, content: &[u8]) -> Value {
    let any = Digest::parse(&format!("sha256:{}", "0".repeat(64))).expect("a digest");
    let digest = any.reading(content).finish().expect("a digest");
    let folder = layout.join("blobs/sha256");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(digest.value()), content).expect("a blob");
    json!({"digest": digest.to_string()})
}

/// An entry of an archive, with any path whatever.
fn entry(kind: EntryType, path: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    header.set_mtime(1);
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    let mut entry = [header.as_bytes(), content].concat();
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

fn file(path: &str, content: &str) -> Vec<u8> {
    entry(EntryType::Regular, path, "", content.as_bytes())
}

fn link(path: &str, target: &str) -> Vec<u8> {
    entry(EntryType::Symlink, path, target, b"")
}

/// An archive of these entries.
fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).expect("packed");
    packer.finish().expect("packed")
}

/// Makes a layout with an image of these layers.
fn layout(folder: &Path, layers: &[Vec<u8>]) {
    let config = json!({"config": {"Entrypoint": ["/bin/tool"], "Env": ["A=b"], "User": "web"}});
    let config = put(folder, config.to_string().as_bytes());
    let layers: Vec<Value> = layers.iter().map(|layer| put(folder, layer)).collect();
    let manifest = json!({"config": config, "layers": layers});
    let mut manifest = put(folder, manifest.to_string().as_bytes());
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": NAME});
    let index = json!({"manifests": [manifest]});
    fs::write(folder.join("index.json"), index.to_string()).expect("an index");
}

/// Two layers, of which the second changes what the first has.
fn layers() -> [Vec<u8>; 2] {
    let first = [
        entry(EntryType::Directory, "./", "", b""),
        file("./bin/tool", "one"),
        entry(EntryType::Link, "bin/same", "bin/tool", b""),
        file("etc/old", "x"),
        file("etc/passwd", "web:x:77:77::/:/\n"),
        file("gone/a", "a"),
        file("gone/b", "b"),
        link("lib", "usr/lib"),
        file("usr/lib/one.so", "1"),
    ];
    let second = [
        file("bin/tool", "two"),
        file("etc/.wh.old", ""),
        // Also what comes before it in the layer is the layer's own.
        file("gone/c", "c"),
        file("gone/.wh..wh..opq", ""),
        // Through a link of a layer before it.
        file("lib/two.so", "2"),
    ];
    [gzip(&archive(&first)), archive(&second)]
}

fn images(scratch: &Path) -> Images {
    Images::new(scratch.join("images"), scratch.join("unpacked"))
}

#[tokio::test]
async fn later_layers_hide_and_replace_what_earlier_ones_have() {
    let scratch = Scratch::new("image");
    layout(&scratch.path().join("images/tool"), &layers());
    let images = images(scratch.path());
    assert_eq!(
        images
            .find("example.com/other:1")
            .await
            .expect("looked for"),
        None
    );
    let found = images.find(NAME).await.expect("looked for");
    let found = found.expect("an image");
    let read = |path: &str| fs::read_to_string(found.root.join(path)).unwrap_or_default();
    assert_eq!(
        (read("bin/tool"), read("bin/same")),
        ("two".into(), "one".into())
    );
    assert!(!found.root.join("etc/old").exists() && !found.root.join("etc/.wh.old").exists());
    let mut left: Vec<_> = fs::read_dir(found.root.join("gone"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["c"]);
    assert_eq!(
        (read("usr/lib/one.so"), read("usr/lib/two.so")),
        ("1".into(), "2".into())
    );
    assert!(found.root.join("lib").is_symlink());
    assert_eq!(found.user(), Some(77));
    assert_eq!(
        found.config.entrypoint.as_deref(),
        Some(&["/bin/tool".to_owned()][..])
    );
}

#[tokio::test]
async fn an_archive_is_a_layout_too() {
    let scratch = Scratch::new("image-archive");
    let inside = scratch.path().join("layout");
    layout(&inside, &layers());
    fs::create_dir_all(scratch.path().join("images")).expect("a folder");
    let done = std::process::Command::new("tar")
        .arg("-cf")
        .arg(scratch.path().join("images/tool.tar"))
        .arg("-C")
        .arg(&inside)
        .arg(".")
        .status();
    assert!(done.expect("tar runs").success());
    let found = images(scratch.path()).find(NAME).await.expect("looked for");
    assert!(found.is_some_and(|image| image.root.join("bin/tool").exists()));
}

#[tokio::test]
async fn long_names_and_large_numbers_of_any_tar_are_read() {
    let scratch = Scratch::new("image-formats");
    let source = scratch.path().join("source");
    let long = format!("{}/{}", "a".repeat(90), "b".repeat(95));
    fs::create_dir_all(source.join("a".repeat(90))).expect("a folder");
    fs::write(source.join(&long), "long").expect("a file");
    std::os::unix::fs::symlink(&long, source.join("link")).expect("a link");
    for format in ["gnu", "pax", "ustar"] {
        let packed = std::process::Command::new("tar")
            .args(["-c", "--format", format, "-C"])
            .arg(&source)
            .args(if format == "ustar" {
                ["--exclude=link", "."]
            } else {
                [".", "--"]
            })
            .output()
            .expect("tar runs");
        assert!(packed.status.success(), "{format}: {packed:?}");
        let name = scratch.path().join(format);
        layout(&name.join("images/tool"), &[packed.stdout]);
        let found = images(&name).find(NAME).await.expect("looked for");
        let root = found.expect("an image").root;
        let read = fs::read_to_string(root.join(&long)).expect("a file");
        assert_eq!(read, "long", "{format}");
        let followed = fs::read_to_string(root.join("link")).unwrap_or_default();
        assert_eq!(followed == "long", format != "ustar");
    }
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

#[test]
fn a_name_with_a_digest_is_that_image_alone() {
    let descriptor: Descriptor = serde_json::from_value(json!({
        "digest": "sha256:ab",
        "annotations": {"org.opencontainers.image.ref.name": NAME},
    }))
    .expect("a descriptor");
    for (name, is) in [
        ("example.com/tool:1", true),
        ("example.com/tool:1@sha256:ab", true),
        ("example.com/tool@sha256:ab", true),
        ("example.com/tool:1@sha256:cd", false),
        ("example.com/other@sha256:ab", false),
    ] {
        assert_eq!(is_named(&descriptor, name), is, "{name}");
    }
}
