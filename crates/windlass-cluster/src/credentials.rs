//! The cluster's certificates and keys, kept in its data folder so that an old kubeconfig works after a restart.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use windlass_apiserver::SigningKey;
use windlass_apiserver::pki::{Authority, KeyedCertificate, PkiError};

const SIGNING_KEY: &str = "sa.key";

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
    /// A key is gone that the certificates in use were signed with.
    #[error("{} is missing, and the certificates of this cluster were signed with it: restore it from a backup", .0.display())]
    Missing(PathBuf),
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
    // The key for tokens is made after this one: a folder that has it lost this one.
    if folder.join(SIGNING_KEY).exists() {
        return Err(CredentialsError::Missing(key));
    }
    let authority = Authority::create()?;
    write_private(&certificate, &authority.pem().certificate)?;
    // The key last: a crash in between leaves a folder that is made anew.
    write_private(&key, &authority.pem().key)?;
    Ok(authority)
}

/// The key in `folder` that signs tokens, made if it is not there.
pub(crate) fn signing_key(folder: &Path) -> Result<SigningKey, CredentialsError> {
    let path = folder.join(SIGNING_KEY);
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

/// Writes a file that only its owner may read; whoever reads it sees all of it or nothing, also
/// after a power cut: the objects of the folder are durable, and are of no use without its keys.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), CredentialsError> {
    write_durably(&Disk, path, text.as_bytes()).map_err(|source| CredentialsError::File {
        path: path.to_owned(),
        source,
    })
}

/// What is asked of a disk, so that a test can play one that forgets what was not synced.
trait Files {
    /// Makes a folder and those above it; each is durable when this returns.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Writes a new file, and syncs it.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Gives a file another name; one of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file has its name only once its content is durable, and then the name is made so, too.
fn write_durably(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = parent(path);
    files.make_folder(folder)?;
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    files.write(&unfinished, bytes)?;
    files.rename(&unfinished, path)?;
    files.sync_folder(folder)
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

struct Disk;

impl Files for Disk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let missing = path.ancestors().take_while(|path| !path.is_dir());
        let missing: Vec<&Path> = missing.collect();
        fs::create_dir_all(path)?;
        for made in missing {
            self.sync_folder(parent(made))?;
        }
        Ok(())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    /// A disk whose power is cut after so many steps: names that were not synced may be lost.
    #[derive(Default)]
    struct Forgetful {
        left: RefCell<usize>,
        now: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
        durable: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
    }

    impl Forgetful {
        fn step(&self) -> io::Result<()> {
            let mut left = self.left.borrow_mut();
            *left = left
                .checked_sub(1)
                .ok_or_else(|| io::Error::other("the power is cut"))?;
            Ok(())
        }
    }

    impl Files for Forgetful {
        fn make_folder(&self, _: &Path) -> io::Result<()> {
            self.step()
        }

        fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
            self.now.borrow_mut().insert(path.to_owned(), Vec::new());
            self.step()?;
            self.now
                .borrow_mut()
                .insert(path.to_owned(), bytes.to_vec());
            Ok(())
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.step()?;
            let moved = self.now.borrow_mut().remove(from).unwrap();
            self.now.borrow_mut().insert(to.to_owned(), moved);
            Ok(())
        }

        fn sync_folder(&self, _: &Path) -> io::Result<()> {
            self.step()?;
            self.durable.replace(self.now.borrow().clone());
            Ok(())
        }
    }

    #[test]
    fn key_is_whole_or_absent_wherever_the_power_is_cut() {
        let path = Path::new("/data/ca.key");
        for steps in 0..10 {
            let files = Forgetful::default();
            *files.left.borrow_mut() = steps;
            let written = write_durably(&files, path, b"secret");
            let (now, durable) = (files.now.take(), files.durable.take());
            // The kernel may have written the names on its own.
            for after in [&now, &durable] {
                assert!(after.get(path).is_none_or(|key| key == b"secret"));
            }
            if written.is_ok() {
                assert_eq!(durable.get(path).map(Vec::as_slice), Some(&b"secret"[..]));
            }
        }
    }

    #[test]
    fn missing_key_of_a_folder_in_use_is_not_replaced() {
        let name = format!("windlass-credentials-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let folder = folder.as_path();
        authority(folder).unwrap();
        fs::remove_file(folder.join("ca.key")).unwrap();
        // Nothing was signed with it yet: the first start was cut off.
        let made = authority(folder).unwrap();
        signing_key(folder).unwrap();
        fs::remove_file(folder.join("ca.key")).unwrap();
        let Err(error) = authority(folder) else {
            panic!("another authority takes the place of the one that was lost");
        };
        assert!(
            error.to_string().ends_with("restore it from a backup"),
            "{error}"
        );
        let kept = fs::read_to_string(folder.join("ca.crt")).unwrap();
        assert_eq!(kept, made.pem().certificate);
        fs::remove_dir_all(folder).unwrap();
    }
}
