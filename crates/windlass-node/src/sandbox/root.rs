//! The root of a sandbox without an image of its own: what an image would have, and no more.
//!
//! Programs that are installed on the machine run in it, so it shows the folders where systems
//! install them, and of `/etc` what programs read to run at all. Everything else of the machine is
//! not there: home folders, data of services, keys, other clusters. The folders of programs are
//! overlays of the machine's, so a container may write to them as to its own.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::folder;

/// Where systems install programs. On most, all but the first are links into it.
const PROGRAMS: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// What every system has, and its mode.
const FOLDERS: [(&str, u32); 19] = [
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("media", 0o755),
    ("mnt", 0o755),
    ("opt", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("run/lock", 0o1777),
    ("srv", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/lib", 0o755),
    ("var/log", 0o755),
    ("var/spool", 0o755),
    ("var/tmp", 0o1777),
];
const LINKS: [(&str, &str); 2] = [("var/run", "/run"), ("var/lock", "/run/lock")];

/// What programs read of `/etc`: who there is, where libraries are, whom to trust, which words and
/// numbers mean what. Nothing that only some may read is taken, whatever it is called.
const SETTINGS: [&str; 52] = [
    "alpine-release",
    "alternatives",
    "bash.bashrc",
    "bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "environment.d",
    "ethertypes",
    "fedora-release",
    "fonts",
    "gai.conf",
    "group",
    "host.conf",
    "inputrc",
    "issue",
    "ld-musl-aarch64.path",
    "ld-musl-x86_64.path",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libaudit.conf",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "mime.types",
    "mtab",
    "netconfig",
    "networks",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "profile.d",
    "protocols",
    "redhat-release",
    "rpc",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];
/// How the names of more of them begin: interpreters, which have a folder for each version.
const INTERPRETERS: [&str; 3] = ["java-", "perl", "python3"];

/// A root for sandboxes.
#[derive(Debug)]
pub(super) struct Root {
    /// What is an overlay's lowest layer.
    path: PathBuf,
    /// The folders of programs that are folders on this machine.
    shown: Vec<&'static str>,
}

impl Root {
    /// Makes the root below the node's folder. What is there already is used by containers that
    /// outlived the node, and is never changed: another content is another folder.
    pub(super) fn make(state_dir: &Path) -> io::Result<Self> {
        Self::of(Path::new("/"), &state_dir.join("roots"))
    }

    fn of(machine: &Path, into: &Path) -> io::Result<Self> {
        let draft = into.join("draft");
        folder::remove_all(&draft)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&draft)?;
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))?;
        let mut hasher = DefaultHasher::new();
        for (path, mode) in FOLDERS {
            make(&draft.join(path), mode)?;
        }
        for (path, target) in LINKS {
            symlink(target, draft.join(path))?;
        }
        let mut shown = Vec::new();
        for name in PROGRAMS {
            let there = machine.join(name);
            if there.is_symlink() {
                copy(&there, &draft.join(name), &mut hasher)?;
            } else if there.is_dir() {
                make(&draft.join(name), 0o755)?;
                shown.push(name);
            }
        }
        shown.hash(&mut hasher);
        for name in settings(&machine.join("etc")) {
            let target = draft.join("etc").join(&name);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            copy(&machine.join("etc").join(&name), &target, &mut hasher)?;
        }
        let path = into.join(format!("{:016x}", hasher.finish()));
        if path.is_dir() {
            folder::remove_all(&draft)?;
        } else {
            fs::rename(&draft, &path)?;
        }
        Ok(Self { path, shown })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a path of the machine is shown, links aside.
    pub(super) fn shows(&self, path: &Path) -> bool {
        let path = path.strip_prefix("/").unwrap_or(path);
        self.shown.iter().any(|name| path.starts_with(name))
    }

    /// The mounts that show the folders of programs, as the OCI runtime wants them; what containers
    /// write to them goes to `folder`.
    pub(super) fn mounts(&self, folder: &Path, read_only: bool) -> io::Result<Vec<Value>> {
        let mut mounts = Vec::new();
        for name in &self.shown {
            let path = format!("/{name}");
            if read_only {
                mounts.push(json!({
                    "destination": path, "type": "bind", "source": path,
                    "options": ["rbind", "rprivate", "ro"],
                }));
                continue;
            }
            let mut options = vec![format!("lowerdir={path}")];
            for layer in ["upper", "work"] {
                let layer_of = folder.join(format!("{layer}-{name}"));
                make(&layer_of, 0o755)?;
                options.push(format!("{layer}dir={}", layer_of.display()));
            }
            mounts.push(json!({
                "destination": path, "type": "overlay", "source": "overlay", "options": options,
            }));
        }
        Ok(mounts)
    }
}

/// What of `/etc` is taken, sorted.
fn settings(etc: &Path) -> Vec<String> {
    let mut names: Vec<String> = SETTINGS.iter().map(|name| (*name).to_owned()).collect();
    for entry in fs::read_dir(etc).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if INTERPRETERS.iter().any(|prefix| name.starts_with(prefix)) {
            names.push(name);
        }
    }
    names.sort();
    names
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => done?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Copies what every user may read; a link as it is.
fn copy(from: &Path, to: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let Ok(facts) = fs::symlink_metadata(from) else {
        return Ok(());
    };
    let mode = facts.mode() & 0o777;
    if facts.is_symlink() {
        let target = fs::read_link(from)?;
        (to.file_name(), &target).hash(hasher);
        return symlink(target, to);
    }
    if facts.is_dir() && mode & 0o005 == 0o005 {
        make(to, 0o755)?;
        let mut names: Vec<_> = fs::read_dir(from)?
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        (to.file_name(), names.len()).hash(hasher);
        for name in names {
            copy(&from.join(&name), &to.join(&name), hasher)?;
        }
    } else if facts.is_file() && mode & 0o004 != 0 {
        let content = fs::read(from)?;
        (to.file_name(), &content, mode).hash(hasher);
        fs::write(to, content)?;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn root_has_what_programs_need_and_nothing_else_of_the_machine() {
        let scratch = Scratch::new("root");
        let machine = scratch.path().join("machine");
        let put = |path: &str, mode: u32| {
            let path = machine.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(&path, "content").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        };
        put("usr/bin/tool", 0o755);
        put("sbin/tool", 0o755);
        symlink("usr/bin", machine.join("bin")).expect("a link");
        for path in [
            "root/.kube/config",
            "home/me/key",
            "srv/x",
            "var/lib/db/x",
            "data/x",
        ] {
            put(path, 0o644);
        }
        for path in [
            "etc/shadow",
            "etc/kubernetes/admin.conf",
            "etc/ssh/key",
            "etc/ssl/private/key",
        ] {
            put(path, 0o644);
        }
        put("etc/passwd", 0o644);
        put("etc/ssl/certs/ca.crt", 0o644);
        // Whatever it is called: not every user may read it.
        put("etc/profile.d/secret.sh", 0o640);
        put("etc/python3.11/site.py", 0o644);
        let into = scratch.path().join("into");
        let root = Root::of(&machine, &into).expect("a root");
        let there = |path: &str| fs::symlink_metadata(root.path().join(path)).is_ok();
        for path in [
            "bin",
            "etc/passwd",
            "etc/ssl/certs/ca.crt",
            "etc/python3.11/site.py",
            "tmp",
        ] {
            assert!(there(path), "{path}");
        }
        for path in [
            "root/.kube",
            "home/me",
            "srv/x",
            "var/lib/db",
            "data",
            "etc/shadow",
            "etc/kubernetes",
            "etc/ssh",
            "etc/ssl/private",
            "etc/profile.d/secret.sh",
            "usr/bin",
        ] {
            assert!(!there(path), "{path}");
        }
        assert!(root.shows(Path::new("/usr/bin/tool")) && root.shows(Path::new("/sbin/tool")));
        assert!(!root.shows(Path::new("/home/me/key")) && !root.shows(Path::new("/bin/tool")));
        // The same is found again, something else is something else.
        assert_eq!(
            Root::of(&machine, &into).expect("a root").path(),
            root.path()
        );
        put("etc/group", 0o644);
        let other = Root::of(&machine, &into).expect("a root");
        assert!(other.path() != root.path() && root.path().is_dir());
        let mounts = root.mounts(scratch.path(), false).expect("mounts");
        let shown: Vec<&Value> = mounts.iter().map(|mount| &mount["destination"]).collect();
        assert_eq!(shown, ["/usr", "/sbin"]);
    }
}
