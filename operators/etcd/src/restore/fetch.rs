//! The helper `fetch`: from the store into the folder of a seed.
//!
//! It runs in the pod of a seed, in the operator's own image, and has no rights in the cluster: the
//! Secret is mounted, and the plan is an argument. What it writes has been checked as a whole.

use std::{fs, io::Write as _, path::Path};

use super::plan::Source;
use crate::{
    backup::transfer::{TransferError, read_back},
    store::{SecretData, Stores},
};

/// The helper's name.
pub const NAME: &str = "fetch";

/// What the helper is started with, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The backup.
    pub source: Source,
    /// The folder with the Secret's files.
    pub secret: String,
    /// The file to write.
    pub to: String,
}

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The argument is not what it should be.
    #[error("cannot read the arguments of fetch: {0}")]
    Arguments(serde_json::Error),
    /// A file cannot be read or written.
    #[error("cannot use {0}: {1}")]
    File(String, std::io::Error),
    /// The store, or what is in it.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The backup is another one than was checked before.
    #[error("the backup has changed since it was checked: its SHA-256 is {0}")]
    Changed(String),
}

/// Fetches the backup that the argument names.
pub async fn fetch(stores: &dyn Stores, argument: &str) -> Result<String, FetchError> {
    let arguments: Arguments = serde_json::from_str(argument).map_err(FetchError::Arguments)?;
    let secret = folder(&arguments.secret)?;
    let store = stores.open(&arguments.source.place, &secret);
    let store = store.map_err(TransferError::from)?;
    let to = Path::new(&arguments.to);
    let told = |error| FetchError::File(arguments.to.clone(), error);
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(told)?;
    }
    let mut file = fs::File::create(to).map_err(told)?;
    let read = read_back(&store, &arguments.source.key, |piece| file.write_all(piece)).await?;
    let checked = read.map_err(told)?;
    if checked.sha256 != arguments.source.sha256 {
        let _ = fs::remove_file(to);
        return Err(FetchError::Changed(checked.sha256));
    }
    file.sync_all().map_err(told)?;
    let (key, bytes) = (&arguments.source.key, checked.bytes);
    Ok(format!(
        "fetched {key}: {bytes} bytes, SHA-256 {}",
        checked.sha256
    ))
}

/// The files of a mounted Secret.
fn folder(path: &str) -> Result<SecretData, FetchError> {
    let told = |error| FetchError::File(path.to_owned(), error);
    let mut data = SecretData::new();
    for entry in fs::read_dir(path).map_err(told)? {
        let file = entry.map_err(told)?.path();
        let name = file.file_name().and_then(|name| name.to_str());
        // Kubelet keeps older versions of the files beside them, in hidden folders.
        if let Some(name) = name.filter(|name| !name.starts_with('.') && file.is_file()) {
            data.insert(name.to_owned(), fs::read(&file).map_err(told)?);
        }
    }
    Ok(data)
}
