//! `windlass envtest`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::envtest::NAMES;
use crate::error::{Error, Result, at};

/// Print a folder for `KUBEBUILDER_ASSETS`: envtest then starts this API server
///
/// The folder has an `etcd`, a `kube-apiserver` and a `kubectl` that understand what envtest asks of
/// them. The API server starts in milliseconds, keeps its objects in memory, and runs no controllers,
/// as with envtest; with `WINDLASS_CONTROLLERS=1` in the environment of the tests it collects objects
/// whose owners are gone, and namespaces that are deleted end. `kubectl` is the one on the path.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  export KUBEBUILDER_ASSETS=$(windlass envtest)\n  WINDLASS_CONTROLLERS=1 go test ./..."
)]
pub(crate) struct Envtest {
    /// The folder. Default: one for this version, in the user's cache
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl Envtest {
    pub(crate) fn run(self) -> Result<()> {
        let folder = match self.dir {
            Some(folder) => folder,
            None => cache()?
                .join("windlass/envtest")
                .join(env!("CARGO_PKG_VERSION")),
        };
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let program = std::env::current_exe()
            .map_err(|error| Error::Other(format!("cannot find this program: {error}")))?;
        for name in NAMES {
            link(&program, &folder.join(name))?;
        }
        let folder = std::path::absolute(&folder).map_err(at(&folder))?;
        println!("{}", folder.display());
        Ok(())
    }
}

/// Makes a link, or leaves the one there is: tests may be running by it.
fn link(program: &Path, link: &Path) -> Result<()> {
    if fs::read_link(link).is_ok_and(|target| target == program) {
        return Ok(());
    }
    let mut unfinished = link.as_os_str().to_owned();
    unfinished.push(format!(".{}", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    symlink(program, &unfinished).map_err(at(&unfinished))?;
    fs::rename(&unfinished, link).map_err(at(link))
}

/// Where this user's programs keep what can be made again.
fn cache() -> Result<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    folder("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&folder("HOME")?).join(".cache")))
        .ok_or_else(|| {
            Error::Other("there is no HOME for the folder; name one with --dir".to_owned())
        })
}
