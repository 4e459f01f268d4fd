//! What an image from anywhere may try, and that nothing comes of it outside its own root.

use std::os::unix::fs::symlink;

use super::*;

/// A folder with an image that does evil, beside a folder that it must not touch.
struct Stage {
    scratch: Scratch,
}

impl Stage {
    fn new(layers: &[Vec<u8>]) -> Self {
        let scratch = Scratch::new("hostile-image");
        layout(&scratch.path().join("images/evil"), layers);
        let stage = Self { scratch };
        let victim = stage.victim();
        fs::create_dir_all(victim.join("folder")).expect("a folder");
        fs::write(victim.join("file"), "kept").expect("a file");
        fs::write(victim.join("folder/inner"), "kept").expect("a file");
        stage
    }

    fn victim(&self) -> PathBuf {
        self.scratch.path().join("victim")
    }

    /// Unpacks the image; whatever comes of it, nothing outside has changed.
    async fn find(&self) -> Result<Image, UnpackError> {
        let found = images(self.scratch.path()).find(NAME).await;
        self.check();
        found.map(|found| found.expect("an image"))
    }

    fn check(&self) {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.victim()).expect("the folder is still there") {
            names.push(entry.expect("an entry").file_name());
        }
        names.sort();
        assert_eq!(names, ["file", "folder"]);
        for path in ["file", "folder/inner"] {
            let text = fs::read_to_string(self.victim().join(path));
            assert_eq!(text.expect("a file"), "kept", "{path}");
        }
        assert!(self.scratch.path().join("images/evil/index.json").exists());
    }

    async fn refused(&self) -> String {
        self.find().await.expect_err("a refusal").to_string()
    }
}

/// An image whose first layer has a link to the victim, by an absolute path or upwards.
async fn through_a_link(second: &[Vec<u8>]) {
    for upwards in [false, true] {
        let stage = Stage::new(&[]);
        let victim = stage.victim();
        let target = if upwards {
            // From the image's root; more of it does not lead further.
            format!(
                "{}{}",
                "../".repeat(8),
                victim.strip_prefix("/").expect("absolute").display()
            )
        } else {
            victim.to_string_lossy().into_owned()
        };
        let first = archive(&[
            link("out", &target),
            link("out-file", &format!("{target}/file")),
        ]);
        layout(
            &stage.scratch.path().join("images/evil"),
            &[first, archive(second)],
        );
        // What it would do outside, it does inside its own root, or it is refused.
        let _ = stage.find().await;
        stage.check();
    }
}

#[tokio::test]
async fn layer_that_writes_through_a_link_of_another_stays_inside() {
    through_a_link(&[
        file("out/new", "evil"),
        file("out/file", "evil"),
        file("out/folder/inner", "evil"),
        entry(EntryType::Directory, "out/folder", "", b""),
        entry(EntryType::Fifo, "out/pipe", "", b""),
        link("out/link", "/etc"),
    ])
    .await;
    through_a_link(&[file("out-file", "evil")]).await;
    through_a_link(&[
        entry(EntryType::Directory, "out", "", b""),
        file("out/file", "evil"),
    ])
    .await;
}

#[tokio::test]
async fn whiteout_behind_a_link_of_another_layer_removes_nothing_outside() {
    through_a_link(&[file("out/.wh.file", "")]).await;
    through_a_link(&[file("out/.wh.folder", "")]).await;
    through_a_link(&[file("out/folder/.wh.inner", "")]).await;
    through_a_link(&[file("out/.wh..wh..opq", "")]).await;
    through_a_link(&[file(".wh.out", "")]).await;
}

#[tokio::test]
async fn hard_link_to_what_is_outside_is_not_made() {
    through_a_link(&[
        entry(EntryType::Link, "stolen", "out/file", b""),
        file("stolen", "evil"),
    ])
    .await;
    let stage = Stage::new(&[archive(&[entry(EntryType::Link, "x", "/etc/passwd", b"")])]);
    stage.refused().await;
}

#[tokio::test]
async fn whiteouts_of_no_name_are_refused() {
    for name in [".wh...", ".wh..", "a/.wh...", ".wh."] {
        let stage = Stage::new(&[archive(&[file("a/b", "x")]), archive(&[file(name, "")])]);
        let refused = stage.refused().await;
        assert!(refused.ends_with("it hides no name of a file"), "{refused}");
    }
}

#[tokio::test]
async fn paths_that_lead_upwards_are_refused() {
    for name in [
        "../victim/file",
        "a/../../victim/file",
        "..",
        "../victim/.wh.file",
    ] {
        let stage = Stage::new(&[archive(&[file(name, "evil")])]);
        let refused = stage.refused().await;
        assert!(refused.ends_with("it leads out of the image"), "{refused}");
    }
    let stage = Stage::new(&[]);
    let victim = stage.victim().join("file");
    layout(
        &stage.scratch.path().join("images/evil"),
        &[archive(&[file(&victim.to_string_lossy(), "evil")])],
    );
    let image = stage.find().await.expect("an image");
    let inside = image.root.join(victim.strip_prefix("/").expect("absolute"));
    assert_eq!(fs::read_to_string(inside).expect("a file"), "evil");
}

#[tokio::test]
async fn devices_are_left_out() {
    let stage = Stage::new(&[archive(&[
        entry(EntryType::Char, "dev/null", "", b""),
        entry(EntryType::Block, "disk", "", b""),
    ])]);
    let image = stage.find().await.expect("an image");
    assert!(!image.root.join("dev/null").exists() && !image.root.join("disk").exists());
}

#[tokio::test]
async fn archives_with_links_in_place_of_their_parts_are_not_followed() {
    let stage = Stage::new(&[archive(&[file("bin/tool", "x")])]);
    let scratch = stage.scratch.path();
    let victim = stage.victim().to_string_lossy().into_owned();
    let digest = "a".repeat(64);
    let bytes = archive(&[
        link("blobs", &victim),
        file("blobs/sha256/evil", "evil"),
        file(&format!("blobs/sha256/{digest}"), "evil"),
        link("index.json", &format!("{victim}/file")),
        file("index.json", "{}"),
        file("../victim/file", "evil"),
    ]);
    fs::write(scratch.join("images/a.tar"), bytes).expect("an archive");
    // Whatever it is, it is not found in it, but in the layout beside it.
    stage.find().await.expect("an image");
}

#[tokio::test]
async fn one_changed_byte_of_a_blob_is_refused() {
    let stage = Stage::new(&layers());
    let folder = stage.scratch.path().join("images/evil");
    let blobs = fs::read_dir(folder.join("blobs/sha256")).expect("blobs");
    let blobs: Vec<PathBuf> = blobs.flatten().map(|entry| entry.path()).collect();
    // The manifest, the configuration and two layers.
    assert_eq!(blobs.len(), 4);
    for blob in &blobs {
        let was = fs::read(blob).expect("a blob");
        let mut changed = was.clone();
        // Of the manifest and the layers a byte that keeps them readable.
        let at = changed
            .iter()
            .position(|byte| *byte == b'c' || *byte == b'x');
        let at = at.unwrap_or(changed.len() - 1);
        changed[at] ^= 1;
        fs::write(blob, changed).expect("a blob");
        let found = images(stage.scratch.path()).find(NAME).await;
        let said = found.expect_err("a refusal").to_string();
        let name = blob.file_name().expect("a name").to_string_lossy();
        let expected = format!("cannot use blob sha256:{name} of ");
        assert!(said.starts_with(&expected), "{said}");
        assert!(
            said.contains("its content has the digest sha256:"),
            "{said}"
        );
        let roots = stage.scratch.path().join("unpacked/roots");
        assert!(!roots.exists(), "nothing is kept of it");
        assert!(!stage.scratch.path().join("unpacked/draft").exists());
        fs::write(blob, was).expect("a blob");
    }
    stage.find().await.expect("an image, once all is right");
}

#[tokio::test]
async fn digests_that_are_none_are_refused() {
    for digest in [
        "sha256:../../../etc/passwd",
        "md5:00",
        "sha256:",
        "sha256:AB",
        "x",
    ] {
        let stage = Stage::new(&[]);
        let index = json!({"manifests": [{
            "digest": digest, "annotations": {"org.opencontainers.image.ref.name": NAME}}]});
        let path = stage.scratch.path().join("images/evil/index.json");
        fs::write(path, index.to_string()).expect("an index");
        assert_eq!(
            stage.refused().await,
            format!("invalid digest \"{digest}\"")
        );
    }
}

#[tokio::test]
async fn images_that_unpack_to_too_much_are_refused_before_anything_is_written() {
    // Zeros, of which a thousand fit into a byte.
    let stage = Stage::new(&[
        gzip(&archive(&[file("a", "x")])),
        gzip(&archive(&[file("bomb", &"\0".repeat(4 << 20))])),
    ]);
    let limits = Limits {
        bytes: 1 << 20,
        entries: 1000,
    };
    let scratch = stage.scratch.path();
    let images = || Images::limited(scratch.join("images"), scratch.join("unpacked"), limits);
    let refused = images()
        .find(NAME)
        .await
        .expect_err("a refusal")
        .to_string();
    assert!(
        refused.ends_with("it holds more than 1048576 bytes"),
        "{refused}"
    );

    let many: Vec<Vec<u8>> = (0..1001).map(|n| file(&format!("f{n}"), "")).collect();
    layout(&scratch.join("images/evil"), &[gzip(&archive(&many))]);
    let refused = images()
        .find(NAME)
        .await
        .expect_err("a refusal")
        .to_string();
    assert!(
        refused.ends_with("it holds more than 1000 files"),
        "{refused}"
    );

    // One that only says so, of a file, a name, or nothing in particular.
    for kind in [b'0', b'L', b'x', b'g', b'V'] {
        let mut claim = file("huge", "");
        let mut header = Header::from_byte_slice(&claim[..512]).clone();
        header.set_entry_type(EntryType::new(kind));
        header.set_size(u64::MAX / 2);
        header.set_cksum();
        claim[..512].copy_from_slice(header.as_bytes());
        layout(&scratch.join("images/evil"), &[claim]);
        images().find(NAME).await.expect_err("a refusal");
    }
    assert!(!scratch.join("unpacked/roots").exists());
    stage.check();
}

#[tokio::test]
async fn list_of_users_that_is_a_link_or_a_pipe_is_not_the_machines() {
    let stage = Stage::new(&[]);
    let victim = stage.victim().join("users");
    fs::write(&victim, "web:x:99:99::/:/\n").expect("a file");
    let evil = stage.scratch.path().join("images/evil");
    layout(
        &evil,
        &[archive(&[link("etc/passwd", &victim.to_string_lossy())])],
    );
    let find = || async { images(stage.scratch.path()).find(NAME).await };
    let image = find().await.expect("looked for").expect("an image");
    assert_eq!(image.user(), None);
    layout(
        &evil,
        &[archive(&[entry(EntryType::Fifo, "etc/passwd", "", b"")])],
    );
    let image = find().await.expect("looked for").expect("an image");
    assert_eq!(image.user(), None);
    // A layout may be a folder full of links, as some tools make it; what they lead to is hashed.
    let blobs = evil.join("blobs");
    let moved = stage.scratch.path().join("moved");
    fs::rename(&blobs, &moved).expect("moved");
    symlink(&moved, &blobs).expect("a link");
    find().await.expect("looked for").expect("an image");
}
