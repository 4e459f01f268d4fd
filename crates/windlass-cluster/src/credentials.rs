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
    authority_on(&Disk, folder)
}

fn authority_on(files: &dyn Files, folder: &Path) -> Result<Authority, CredentialsError> {
    let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
    if files.exists(&key) {
        return Ok(Authority::from_pem(KeyedCertificate {
            certificate: read(files, &certificate)?,
            key: read(files, &key)?,
        }));
    }
    // The key for tokens is made after this one: a folder that has it lost this one.
    if files.exists(&folder.join(SIGNING_KEY)) {
        return Err(CredentialsError::Missing(key));
    }
    let authority = Authority::create()?;
    write_private_on(files, &certificate, &authority.pem().certificate)?;
    // The key last: after a crash in between, the next start makes both.
    write_private_on(files, &key, &authority.pem().key)?;
    Ok(authority)
}

/// The key in `folder` that signs tokens, made if it is not there.
pub(crate) fn signing_key(folder: &Path) -> Result<SigningKey, CredentialsError> {
    signing_key_on(&Disk, folder)
}

fn signing_key_on(files: &dyn Files, folder: &Path) -> Result<SigningKey, CredentialsError> {
    let path = folder.join(SIGNING_KEY);
    if files.exists(&path) {
        return Ok(SigningKey::from_pem(&read(files, &path)?)?);
    }
    let key = SigningKey::generate()?;
    write_private_on(files, &path, key.pem())?;
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

fn read(files: &dyn Files, path: &Path) -> Result<String, CredentialsError> {
    files.read(path).map_err(|source| CredentialsError::File {
        path: path.to_owned(),
        source,
    })
}

/// Writes a file that only its owner may read; whoever reads it sees all of it or nothing, also
/// after a power cut: the objects of the folder are durable, and are of no use without its keys.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), CredentialsError> {
    write_private_on(&Disk, path, text)
}

fn write_private_on(files: &dyn Files, path: &Path, text: &str) -> Result<(), CredentialsError> {
    write_durably(files, path, text.as_bytes()).map_err(|source| CredentialsError::File {
        path: path.to_owned(),
        source,
    })
}

/// What is asked of a disk, so that a test can play one that forgets what was not synced.
trait Files {
    fn exists(&self, path: &Path) -> bool;
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Makes a folder; the one it is in exists.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Writes a new file.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content of a file durable.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// Gives a file another name; one of that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file has its name only once its content is durable, and then the name is made so, too.
fn write_durably(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = parent(path);
    let missing = folder.ancestors().take_while(|path| !files.exists(path));
    let missing: Vec<&Path> = missing.collect();
    for made in missing.into_iter().rev() {
        files.make_folder(made)?;
        files.sync_folder(parent(made))?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    files.write(&unfinished, bytes)?;
    files.sync(&unfinished)?;
    files.rename(&unfinished, path)?;
    files.sync_folder(folder)
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

struct Disk;

impl Files for Disk {
    fn exists(&self, path: &Path) -> bool {
        // Above a relative path is the folder that the process is in.
        path.as_os_str().is_empty() || path.exists()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        // Another process may have made it in the meantime.
        fs::create_dir_all(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(bytes)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
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

    /// A file: what it holds, and what of that is durable. A folder holds nothing.
    #[derive(Clone, Default)]
    struct Node {
        now: Vec<u8>,
        durable: Vec<u8>,
    }

    /// Names, and the number of the file that each is of.
    type Names = BTreeMap<PathBuf, usize>;

    #[derive(Clone, Default)]
    struct State {
        nodes: Vec<Node>,
        now: Names,
        durable: Names,
    }

    impl State {
        fn add(&mut self, path: &Path, now: Vec<u8>) {
            self.now.insert(path.to_owned(), self.nodes.len());
            self.nodes.push(Node {
                now,
                durable: Vec::new(),
            });
        }

        /// What a disk may hold after the power was cut: the kernel may have written more than it
        /// was asked to, names or contents.
        fn survivors(&self) -> [Self; 4] {
            [(false, false), (false, true), (true, false), (true, true)].map(|(names, contents)| {
                let names = if names { &self.now } else { &self.durable };
                let is_found = |path: &Path| path.ancestors().all(|path| names.contains_key(path));
                let found = names.iter().filter(|(path, _)| is_found(path));
                let names: Names = found.map(|(path, node)| (path.clone(), *node)).collect();
                let nodes = self.nodes.iter().map(|node| {
                    let kept = if contents { &node.now } else { &node.durable };
                    Node {
                        now: kept.clone(),
                        durable: kept.clone(),
                    }
                });
                Self {
                    nodes: nodes.collect(),
                    durable: names.clone(),
                    now: names,
                }
            })
        }
    }

    /// A disk that forgets what was not synced, and whose power is cut after so many steps.
    struct Forgetful {
        left: RefCell<usize>,
        state: RefCell<State>,
    }

    impl Forgetful {
        fn new(state: State, steps: usize) -> Self {
            Self {
                left: RefCell::new(steps),
                state: RefCell::new(state),
            }
        }

        fn empty() -> State {
            let mut state = State::default();
            state.add(Path::new("/"), Vec::new());
            state.durable = state.now.clone();
            state
        }

        fn step(&self) -> io::Result<()> {
            let mut left = self.left.borrow_mut();
            *left = left
                .checked_sub(1)
                .ok_or_else(|| io::Error::other("the power is cut"))?;
            Ok(())
        }
    }

    impl Files for Forgetful {
        fn exists(&self, path: &Path) -> bool {
            self.state.borrow().now.contains_key(path)
        }

        fn read(&self, path: &Path) -> io::Result<String> {
            let state = self.state.borrow();
            let node = state.now.get(path).ok_or(io::ErrorKind::NotFound)?;
            let bytes = state.nodes[*node].now.clone();
            String::from_utf8(bytes).map_err(io::Error::other)
        }

        fn make_folder(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            self.state.borrow_mut().add(path, Vec::new());
            Ok(())
        }

        fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
            self.state.borrow_mut().add(path, Vec::new());
            self.step()?;
            self.state.borrow_mut().add(path, bytes.to_vec());
            Ok(())
        }

        fn sync(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            let mut state = self.state.borrow_mut();
            let node = state.now[path];
            state.nodes[node].durable = state.nodes[node].now.clone();
            Ok(())
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.step()?;
            let mut state = self.state.borrow_mut();
            let node = state.now.remove(from).ok_or(io::ErrorKind::NotFound)?;
            state.now.insert(to.to_owned(), node);
            Ok(())
        }

        fn sync_folder(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            let mut state = self.state.borrow_mut();
            let State { now, durable, .. } = &mut *state;
            let is_in = |name: &Path| name.parent() == Some(path);
            durable.retain(|name, _| !is_in(name));
            let synced = now.iter().filter(|(name, _)| is_in(name));
            durable.extend(synced.map(|(name, node)| (name.clone(), *node)));
            Ok(())
        }
    }

    /// The keys of a cluster: those there are, or new ones.
    fn start(files: &Forgetful) -> Result<[String; 3], CredentialsError> {
        let folder = Path::new("/home/data/pki");
        let authority = authority_on(files, folder)?;
        let signing_key = signing_key_on(files, folder)?;
        let pem = authority.pem();
        let keys = [&pem.certificate, &pem.key, signing_key.pem()];
        Ok(keys.map(ToString::to_string))
    }

    #[test]
    fn keys_are_whole_or_made_again_wherever_the_power_is_cut() {
        let mut steps = 0;
        loop {
            let files = Forgetful::new(Forgetful::empty(), steps);
            let first = start(&files);
            for survivor in files.state.borrow().survivors() {
                let again = start(&Forgetful::new(survivor, usize::MAX));
                let again = again.unwrap_or_else(|error| panic!("cut after {steps}: {error}"));
                if let Ok(first) = &first {
                    assert_eq!(again, *first, "cut after {steps}");
                }
            }
            if first.is_ok() {
                break;
            }
            steps += 1;
        }
        // Three folders with the ones above, and three files of four steps each.
        assert_eq!(steps, 3 * 2 + 3 * 4);
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
