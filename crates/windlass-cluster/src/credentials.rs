//! The cluster's certificates and keys, kept in its data folder so that an old kubeconfig works after a restart.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use windlass_apiserver::SigningKey;
use windlass_apiserver::pki::{Authority, KeyedCertificate, PkiError};

/// Why the certificates cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// A certificate cannot be made.
    #[error(transparent)]
    Pki(#[from] PkiError),
}

/// The authority in `folder`, made if it is not there.
pub(crate) fn authority(folder: &Path) -> Result<Authority, CredentialsError> {
    let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
    if key.exists() {
        return Ok(Authority::from_pem(KeyedCertificate {
            certificate: read(&certificate)?,
            key: read(&key)?,
        }));
    }
    let authority = Authority::create()?;
    write_private(&certificate, &authority.pem().certificate)?;
    // The key last: a crash in between leaves a folder that is made anew.
    write_private(&key, &authority.pem().key)?;
    Ok(authority)
}

/// The key in `folder` that signs tokens, made if it is not there.
pub(crate) fn signing_key(folder: &Path) -> Result<SigningKey, CredentialsError> {
    let path = folder.join("sa.key");
    if path.exists() {
        return Ok(SigningKey::from_pem(&read(&path)?)?);
    }
    let key = SigningKey::generate()?;
    write_private(&path, key.pem())?;
    Ok(key)
}

/// A client certificate, also written to `name`.crt and .key for programs that want files. It is made
/// anew at every start, because certificates expire; older ones of the same authority go on working.
pub(crate) fn client(
    folder: &Path,
    authority: &Authority,
    name: &str,
    user: &str,
    group: &str,
) -> Result<KeyedCertificate, CredentialsError> {
    let (certificate, key) = (
        folder.join(format!("{name}.crt")),
        folder.join(format!("{name}.key")),
    );
    let made = authority.client(user, group)?;
    write_private(&certificate, &made.certificate)?;
    write_private(&key, &made.key)?;
    Ok(made)
}

fn read(path: &Path) -> Result<String, CredentialsError> {
    fs::read_to_string(path).map_err(|source| CredentialsError::File {
        path: path.to_owned(),
        source,
    })
}

/// Writes a file that only its owner may read; whoever reads it sees all of it or nothing.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), CredentialsError> {
    let write = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|source| CredentialsError::File {
        path: path.to_owned(),
        source,
    })
}
