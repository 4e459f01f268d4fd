//! Layouts: an index, and blobs that are kept by their digests.
//!
//! Whatever has a digest is hashed when it is read, so that no name of an image is given to what it
//! does not name. The index has none: it is the user's word for what the names mean.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::archive::{self, Archive};
use super::digest::Digest;
use super::packed::{Limits, Room, Unpacked};
use super::{Config, UnpackError};
use crate::folder;

/// No document of an image is larger, but for its layers.
const LONGEST_DOCUMENT: u64 = 8 * 1024 * 1024;
const INDEX: &str = "index.json";
const BLOBS: &str = "blobs";

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Index {
    pub(super) manifests: Vec<Descriptor>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) digest: String,
    #[serde(default)]
    pub(super) media_type: String,
    #[serde(default)]
    pub(super) annotations: std::collections::BTreeMap<String, String>,
    pub(super) platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Platform {
    pub(super) architecture: String,
    pub(super) os: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ImageFile {
    #[serde(default)]
    pub(super) config: Config,
}

/// The folder of a layout.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) folder: PathBuf,
}

impl Layout {
    /// Takes what a layout is made of out of an archive into a folder of its own.
    pub(super) fn unpack(archive: &Path, into: &Path, limits: Limits) -> Result<(), UnpackError> {
        let read = || UnpackError::io("read", archive);
        let file = folder::open_file(archive).map_err(read())?;
        let mut room = Room::new(limits);
        let mut entries = Archive::new(Unpacked::new(archive, file, limits)?);
        let mut headers = 0;
        while let Some(entry) = entries.next().map_err(read())? {
            room.take(archive, entry.size, entries.headers() - headers)?;
            headers = entries.headers();
            let names = archive::names(&entry.path).unwrap_or_default();
            // Anything else, links among it, is nothing that a layout needs.
            let Some(place) = place(&names).filter(|_| entry.kind.is_file()) else {
                continue;
            };
            let path = into.join(place);
            let write = || UnpackError::io("write", &path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(write())?;
            }
            let mut file = fs::File::create(&path).map_err(write())?;
            io::copy(&mut entries, &mut file).map_err(write())?;
        }
        Ok(())
    }

    /// What there is; none when this is no layout.
    pub(super) fn index(&self) -> Result<Option<Index>, UnpackError> {
        let path = self.folder.join(INDEX);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = document(&path, |file| file)?.0;
        parse(&path, &bytes).map(Some)
    }

    /// Where what has a digest is kept.
    pub(super) fn blob(&self, digest: &Digest) -> PathBuf {
        let blobs = self.folder.join(BLOBS).join(digest.algorithm());
        blobs.join(digest.value())
    }

    /// Reads a document, which must be the one that the digest says.
    pub(super) fn read<T: DeserializeOwned>(&self, digest: &Digest) -> Result<T, UnpackError> {
        let path = self.blob(digest);
        let (bytes, hashed) = document(&path, |file| digest.reading(file))?;
        let found = hashed.finish().map_err(UnpackError::io("read", &path))?;
        if found != *digest {
            return Err(UnpackError::Changed {
                layout: self.folder.clone(),
                wanted: digest.to_string(),
                found: found.to_string(),
            });
        }
        parse(&path, &bytes)
    }
}

/// Where in a layout the file of an archive belongs.
fn place(names: &[&std::ffi::OsStr]) -> Option<PathBuf> {
    let text: Option<Vec<&str>> = names.iter().map(|name| name.to_str()).collect();
    match text?.as_slice() {
        [INDEX] => Some(INDEX.into()),
        [BLOBS, algorithm, value] => {
            let digest = Digest::parse(&format!("{algorithm}:{value}")).ok()?;
            Some(
                Path::new(BLOBS)
                    .join(digest.algorithm())
                    .join(digest.value()),
            )
        }
        _ => None,
    }
}

/// Reads a file that is not to be large, through another reader.
fn document<R: io::Read>(
    path: &Path,
    through: impl FnOnce(fs::File) -> R,
) -> Result<(Vec<u8>, R), UnpackError> {
    let file = folder::open_file(path).map_err(UnpackError::io("read", path))?;
    let mut reader = through(file).take(LONGEST_DOCUMENT + 1);
    let mut bytes = Vec::new();
    let read = reader.read_to_end(&mut bytes);
    read.map_err(UnpackError::io("read", path))?;
    if bytes.len() as u64 > LONGEST_DOCUMENT {
        return Err(UnpackError::Document {
            path: path.to_owned(),
            limit: LONGEST_DOCUMENT,
        });
    }
    Ok((bytes, reader.into_inner()))
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, UnpackError> {
    serde_json::from_slice(bytes).map_err(|source| UnpackError::Malformed {
        path: path.to_owned(),
        source,
    })
}
