//! Images from anywhere, loaded by a user who trusts them no more than their digests.

use std::process::Command;

use serde_json::json;

use crate::host::Host;

/// Writes an archive of an image, as its author in Python would. `layers` makes a list of layers, of
/// `(kind, path, link, content)` each; `change` may change blobs by their digests.
fn image(host: &Host, name: &str, layers: &str, change: &str) {
    let program = format!(
        r#"
import hashlib, io, json, tarfile
HOST = {host:?}
FILE, LINK, DIR, HARD = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE
blobs = {{}}
def blob(content):
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {{"digest": "sha256:" + digest, "size": len(content)}}
def archive(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for kind, path, link, content in entries:
            info = tarfile.TarInfo(path)
            info.type, info.linkname, info.size, info.mode = kind, link, len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()
layers = {layers}
config = blob(json.dumps({{"architecture": "", "os": "linux", "config": {{"Entrypoint": ["/bin/tool"]}}}}).encode())
manifest = blob(json.dumps({{"schemaVersion": 2, "config": config, "layers": [blob(archive(layer)) for layer in layers]}}).encode())
{change}
manifest["annotations"] = {{"org.opencontainers.image.ref.name": "evil/{name}:1"}}
manifest["mediaType"] = "application/vnd.oci.image.manifest.v1+json"
with tarfile.open("{name}.tar", "w") as tar:
    def add(path, content):
        info = tarfile.TarInfo(path)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    add("oci-layout", b'{{"imageLayoutVersion": "1.0.0"}}')
    for digest, content in blobs.items():
        add("blobs/sha256/" + digest, content)
    add("index.json", json.dumps({{"schemaVersion": 2, "manifests": [manifest]}}).encode())
"#,
        host = host.tree.to_string_lossy(),
    );
    let made = Command::new("python3")
        .args(["-c", &program])
        .current_dir(host.folder.path())
        .output()
        .expect("python3 runs");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    // Whether it is taken or refused here: the node must do what is right with it.
    let images = host.folder.path().join(".windlass/images");
    std::fs::create_dir_all(&images).expect("a folder");
    let file = format!("{name}.tar");
    std::fs::rename(host.folder.path().join(&file), images.join(file)).expect("moved");
}

/// Runs an image; what the pod waits for, or nothing if it ran.
fn run(host: &Host, name: &str) -> String {
    let container = json!({"name": "main", "image": format!("evil/{name}:1")});
    host.pod(
        name,
        json!({"restartPolicy": "Never", "containers": [container]}),
    );
    host.when(name, "decided", |pod| {
        let state = &pod["status"]["containerStatuses"][0]["state"];
        let waiting = state["waiting"]["reason"].as_str();
        if let Some("ContainerCreating" | "PodInitializing") = waiting {
            return None;
        }
        if waiting.is_some() {
            return state["waiting"]["message"].as_str().map(str::to_owned);
        }
        state["terminated"]["exitCode"]
            .as_i64()
            .map(|_| String::new())
    })
}

#[test]
fn images_neither_write_nor_remove_files_of_the_host() {
    let Some(host) = Host::sandbox("images") else {
        return;
    };
    let first = "[(LINK, 'out', HOST, b''), (LINK, 'up', '../' * 12 + HOST[1:], b''), (LINK, 'id', HOST + '/keys/id', b'')]";
    for (name, second) in [
        (
            "write",
            "(FILE, 'out/new', '', b'evil'), (FILE, 'up/open/file', '', b'evil'), (FILE, 'id', '', b'evil')",
        ),
        (
            "make",
            "(DIR, 'out/made', '', b''), (DIR, 'up/open', '', b''), (LINK, 'out/link2', '/etc', b'')",
        ),
        (
            "hide",
            "(FILE, 'out/.wh.passwd', '', b''), (FILE, 'up/.wh.keys', '', b'')",
        ),
        (
            "hide-all",
            "(FILE, 'out/.wh..wh..opq', '', b''), (FILE, 'up/open/.wh..wh..opq', '', b'')",
        ),
        ("hide-up", "(FILE, '.wh...', '', b'')"),
        (
            "upwards",
            "(FILE, '../' * 12 + HOST[1:] + '/new', '', b'evil')",
        ),
        (
            "hard",
            "(HARD, 'stolen', 'out/keys/id', b''), (FILE, 'stolen', '', b'evil')",
        ),
    ] {
        image(&host, name, &format!("[{first}, [{second}]]"), "");
        // None of them has a program; most are not even unpacked.
        run(&host, name);
    }
    host.check();
}

#[test]
fn images_that_are_not_what_they_say_are_refused_by_their_digests() {
    let Some(host) = Host::sandbox("digests") else {
        return;
    };
    let layers = "[[(FILE, 'bin/tool', '', b'x')]]";
    for (name, which) in [
        ("manifest", "manifest['digest'][7:]"),
        ("config", "config['digest'][7:]"),
        ("layer", "list(blobs)[1]"),
    ] {
        let change = format!("blobs[{which}] = blobs[{which}].replace(b'l', b'm', 1) + b' '");
        image(&host, name, layers, &change);
        let said = run(&host, name);
        assert!(
            said.contains("cannot use blob sha256:")
                && said.contains("its content has the digest sha256:"),
            "{name}: {said}"
        );
        let file = format!(".windlass/images/{name}.tar");
        std::fs::remove_file(host.folder.path().join(file)).expect("removed");
    }
    // One that says it holds more than any disk, and one that unpacks to it.
    let bomb = "info = tarfile.TarInfo('bomb'); info.size = 1 << 50\n\
                content = __import__('gzip').compress(info.tobuf() + b'\\0' * (1 << 20))\n\
                bomb = blob(content)\n\
                manifest = blob(json.dumps({'schemaVersion': 2, 'config': config, 'layers': [bomb]}).encode())";
    image(&host, "bomb", layers, bomb);
    let said = run(&host, "bomb");
    assert!(said.contains("it holds more than"), "{said}");
    // An index and a layout of gigabytes, on a disk that has no place for them.
    let huge = host.folder.path().join(".windlass/images/huge");
    std::fs::create_dir(&huge).expect("a folder");
    for name in ["oci-layout", "index.json"] {
        let file = std::fs::File::create(huge.join(name)).expect("a file");
        file.set_len(8 << 30).expect("a length");
    }
    assert!(!run(&host, "huge").is_empty(), "there is no such image");
    host.check();
}
