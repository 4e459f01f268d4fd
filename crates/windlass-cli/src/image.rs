//! An OCI image: one layer with the program, what it is linked with, and a user to run as.
//!
//! Written as an archive in the OCI image layout, which every registry tool reads. The same program
//! gives the same bytes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tar::{Archive, Builder, EntryType, Header};

use crate::error::{Error, Result, at};

/// Who runs in the image.
const USER: u64 = 65532;

/// An image, in memory.
pub(crate) struct Image {
    tag: String,
    layer: Vec<u8>,
    config: Vec<u8>,
    manifest: Vec<u8>,
}

impl Image {
    /// The image of a program, under a name of its own in the image's root.
    pub(crate) fn of_program(program: &Path, name: &str, tag: &str) -> Result<Self> {
        let layer = layer(program, name)?;
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "User": format!("{USER}:{USER}"),
                "Entrypoint": [format!("/{name}")],
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))]},
        });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": described("application/vnd.oci.image.config.v1+json", &config),
            "layers": [described("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        Ok(Self {
            tag: tag.to_owned(),
            manifest: manifest.to_string().into_bytes(),
            layer,
            config,
        })
    }

    /// What registries call the image.
    pub(crate) fn digest(&self) -> String {
        sha256(&self.manifest)
    }

    pub(crate) fn megabytes(&self) -> usize {
        self.layer.len().div_ceil(1_000_000)
    }

    /// Writes the archive.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        let unfinished = path.with_extension("tar.new");
        let write = || -> io::Result<()> {
            let mut archive = Builder::new(File::create(&unfinished)?);
            let mut index = described("application/vnd.oci.image.manifest.v1+json", &self.manifest);
            index["annotations"] = json!({
                "org.opencontainers.image.ref.name": self.tag,
                "io.containerd.image.name": self.tag,
            });
            let index = json!({
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.index.v1+json",
                "manifests": [index],
            });
            let layout = json!({"imageLayoutVersion": "1.0.0"}).to_string();
            file(&mut archive, "oci-layout", 0o644, layout.as_bytes())?;
            file(
                &mut archive,
                "index.json",
                0o644,
                index.to_string().as_bytes(),
            )?;
            folder(&mut archive, "blobs/")?;
            folder(&mut archive, "blobs/sha256/")?;
            for blob in [&self.manifest, &self.config, &self.layer] {
                file(
                    &mut archive,
                    &format!("blobs/sha256/{}", sha256(blob)),
                    0o644,
                    blob,
                )?;
            }
            archive.into_inner()?.sync_all()
        };
        let written = write().map_err(at(&unfinished));
        let placed = written.and_then(|()| fs::rename(&unfinished, path).map_err(at(path)));
        if placed.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        placed
    }
}

/// The name of an image with its tag.
pub(crate) fn full_name(name: &str) -> Result<String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-/:@".contains(letter);
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(Error::Other(format!(
            "{name:?} is not a name of an image, such as my-operator:1.0.0"
        )));
    }
    let tagged = name
        .rsplit('/')
        .next()
        .is_some_and(|last| last.contains([':', '@']));
    Ok(if tagged {
        name.to_owned()
    } else {
        format!("{name}:latest")
    })
}

/// The file an image is kept in.
pub(crate) fn file_name(tag: &str) -> String {
    format!("{}.tar", tag.replace(['/', ':', '@'], "_"))
}

/// The name of the image in an archive.
pub(crate) fn tag_of(path: &Path) -> Result<String> {
    let refused = |why: &str| {
        Error::Other(format!(
            "{} is not an archive of an OCI image: {why}; make one with `windlass image build`",
            path.display()
        ))
    };
    let mut archive = Archive::new(File::open(path).map_err(at(path))?);
    for entry in archive.entries().map_err(at(path))? {
        let entry = entry.map_err(|error| refused(&error.to_string()))?;
        if entry
            .path()
            .is_ok_and(|path| path == Path::new("index.json"))
        {
            let mut text = String::new();
            // An index is small; anything else is none.
            entry
                .take(1 << 20)
                .read_to_string(&mut text)
                .map_err(|error| refused(&error.to_string()))?;
            let index: Value =
                serde_json::from_str(&text).map_err(|error| refused(&error.to_string()))?;
            let name = &index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"];
            return name
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| refused("its index names no image"));
        }
    }
    Err(refused("it has no index.json"))
}

fn layer(program: &Path, name: &str) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    let mut add = |to: &str, mode: u32, content: &[u8]| -> io::Result<()> {
        let parents: Vec<&Path> = Path::new(to).ancestors().skip(1).collect();
        for parent in parents
            .iter()
            .rev()
            .filter(|parent| parent.as_os_str() != "")
        {
            if folders.insert(parent.to_path_buf()) {
                folder(&mut archive, &format!("{}/", parent.display()))?;
            }
        }
        file(&mut archive, to, mode, content)
    };
    let content = fs::read(program).map_err(at(program))?;
    let users = format!("root:x:0:0:root:/:/\nnonroot:x:{USER}:{USER}:nonroot:/:/\n");
    let mut write = || -> io::Result<()> {
        add("etc/passwd", 0o644, users.as_bytes())?;
        add(
            "etc/group",
            0o644,
            format!("root:x:0:\nnonroot:x:{USER}:\n").as_bytes(),
        )?;
        for library in libraries(program)? {
            let text = library.to_string_lossy();
            add(text.trim_start_matches('/'), 0o755, &fs::read(&library)?)?;
        }
        add(name, 0o755, &content)
    };
    write().map_err(at(program))?;
    archive.into_inner().map_err(at(program))
}

/// The shared libraries a program is linked with, and what loads them.
fn libraries(program: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let output = Command::new("ldd").arg(program).output()?;
    // A static program has none, and ldd says so by failing.
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect())
}

fn described(media_type: &str, content: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256(content)), "size": content.len()})
}

fn sha256(content: &[u8]) -> String {
    use std::fmt::Write as _;
    digest(&SHA256, content)
        .as_ref()
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn file<W: io::Write>(
    archive: &mut Builder<W>,
    path: &str,
    mode: u32,
    content: &[u8],
) -> io::Result<()> {
    let mut header = header(EntryType::Regular, mode);
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, path, content)
}

fn folder<W: io::Write>(archive: &mut Builder<W>, path: &str) -> io::Result<()> {
    let mut header = header(EntryType::Directory, 0o755);
    header.set_size(0);
    archive.append_data(&mut header, path, io::empty())
}

/// The time of writing is left out, so that the same content gives the same bytes.
fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_same_twice_and_says_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let image = Image::of_program(&program, "demo", "demo:1").unwrap();
        let again = Image::of_program(&program, "demo", "demo:1").unwrap();
        assert_eq!(image.digest(), again.digest());
        let path = folder.path().join("demo.tar");
        image.write(&path).unwrap();
        assert_eq!(tag_of(&path).unwrap(), "demo:1");
        let mut layer = Archive::new(image.layer.as_slice());
        let names: Vec<String> = layer
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert!(names.contains(&"demo".to_owned()), "{names:?}");
        assert!(
            names.iter().any(|name| name.contains("libc.so")),
            "{names:?}"
        );
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tar");
        fs::write(&path, "nonsense").unwrap();
        assert!(
            tag_of(&path)
                .unwrap_err()
                .to_string()
                .contains("windlass image build")
        );
        assert!(full_name("a b").is_err());
        assert_eq!(full_name("reg:5000/a").unwrap(), "reg:5000/a:latest");
        assert_eq!(full_name("a:1").unwrap(), "a:1");
    }
}
