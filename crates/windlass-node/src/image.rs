//! Images and the programs that stand for them.
//!
//! A node without a container runtime has no images, but the machine has programs. The table says
//! which program an image stands for, what it is called with when the container says nothing, and
//! what it must be told because it is not alone on its network: the address to listen on. The
//! additions are appended only when the program that runs is really the image's own, and only when
//! the container does not already say the same thing with another flag. Users extend the table.
//!
//! A container with a `command` of its own may run any program of the host, whatever its image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;
use serde::{Deserialize, Serialize};

/// A program of the host that stands for an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Program {
    /// Its name in `PATH`, or its path.
    pub program: String,
    /// What it is called with when the container has no `args`.
    #[serde(default)]
    pub args: Vec<String>,
    /// Whether it runs only when the container has no `args`: those of an image without an entry
    /// point, such as a shell's, are a whole command.
    #[serde(default)]
    pub default_only: bool,
    /// What is appended to its arguments unless the container says so itself.
    #[serde(default)]
    pub additions: Vec<Addition>,
    /// Whom it runs as in a sandbox unless the container says so: what `USER` is to an image.
    #[serde(default)]
    pub user: Option<u32>,
    /// Variables it gets unless the container defines them.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The arguments with which it prints its version; empty when it cannot.
    #[serde(default)]
    pub version_args: Vec<String>,
    /// Whether a version other than the tag's is refused instead of reported.
    #[serde(default)]
    pub exact: bool,
    /// The package that brings it, for the message when it is missing.
    #[serde(default)]
    pub package: Option<String>,
}

/// Arguments a program needs on a shared machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Addition {
    /// The arguments, with `$(VAR)` expansion.
    pub args: Vec<String>,
    /// The flags that say the same; with one of them present nothing is added.
    pub unless: Vec<String>,
    /// Whether they are needed only when the node runs as root.
    #[serde(default)]
    pub as_root_only: bool,
}

/// The programs by image name (without tag and digest; Docker Hub's official images by their
/// short name).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ImageTable {
    programs: BTreeMap<String, Program>,
}

/// What a container runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// The program and its arguments, before `$(VAR)` expansion.
    pub argv: Vec<String>,
    /// The table's entry, when the program is the image's own.
    pub program: Option<&'a Program>,
    /// The image's tag.
    pub tag: Option<&'a str>,
}

/// Why an image cannot be had: an `ErrImagePull`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImageError {
    /// No entry and no command.
    #[error(
        "no program is known for image \"{0}\": this node runs programs of the host; add the \
         image to images.yaml in the cluster's data folder and start the cluster again, or give \
         the container a command"
    )]
    Unknown(String),
    /// The entry's program is not installed.
    #[error("image \"{image}\" stands for the program {program}, which is not installed{hint}")]
    NotInstalled {
        /// The image as the container names it.
        image: String,
        /// The program that is missing.
        program: String,
        /// How to get it, as a clause of the sentence.
        hint: String,
    },
    /// The entry wants the tag's version, and another is installed.
    #[error("image \"{image}\" must be of that version, and {program} is {version} here")]
    WrongVersion {
        /// The image as the container names it.
        image: String,
        /// The program that is installed.
        program: String,
        /// Its version.
        version: String,
    },
}

impl Default for ImageTable {
    /// The programs the samples of the bundled operators need, and what people look around with.
    fn default() -> Self {
        let mut table = Self {
            programs: BTreeMap::new(),
        };
        let addition = |args: &[&str], unless: &[&str]| Addition {
            args: args.iter().map(ToString::to_string).collect(),
            unless: unless.iter().map(ToString::to_string).collect(),
            as_root_only: false,
        };
        let program =
            |name: &str, package: &str, version: &str, additions: Vec<Addition>| Program {
                additions,
                version_args: vec![version.to_owned()],
                package: Some(package.to_owned()),
                ..Program::named(name)
            };
        let user = Addition {
            as_root_only: true,
            ..addition(&["-u", "nobody"], &["-u", "--user"])
        };
        table.insert(
            "memcached",
            program(
                "memcached",
                "memcached",
                "-V",
                vec![
                    addition(
                        &["-l", "$(POD_IP)"],
                        &["-l", "--listen", "-s", "--unix-socket"],
                    ),
                    user,
                ],
            ),
        );
        table.insert(
            "redis",
            program(
                "redis-server",
                "redis-server",
                "--version",
                vec![
                    addition(&["--bind", "$(POD_IP)"], &["--bind"]),
                    addition(&["--protected-mode", "no"], &["--protected-mode"]),
                ],
            ),
        );
        let url =
            |flag: &str, port: u16| addition(&[flag, &format!("http://$(POD_IP):{port}")], &[flag]);
        let mut etcd = program(
            "etcd",
            "etcd-server",
            "--version",
            vec![
                url("--listen-client-urls", 2379),
                url("--advertise-client-urls", 2379),
                url("--listen-peer-urls", 2380),
                url("--initial-advertise-peer-urls", 2380),
            ],
        );
        // Members of different versions do not always get on, and data is not always read again.
        etcd.exact = true;
        for name in [
            "quay.io/coreos/etcd",
            "gcr.io/etcd-development/etcd",
            "registry.k8s.io/etcd",
        ] {
            table.insert(name, etcd.clone());
        }
        for name in ["busybox", "alpine", "debian", "ubuntu"] {
            let shell = Program {
                default_only: true,
                ..Program::named("sh")
            };
            table.insert(name, shell);
        }
        let pause = Program {
            args: vec!["infinity".to_owned()],
            ..Program::named("sleep")
        };
        table.insert("registry.k8s.io/pause", pause);
        table
    }
}

impl ImageTable {
    /// Adds or replaces the program of an image.
    pub fn insert(&mut self, image: &str, program: Program) {
        self.programs.insert(split(image).0, program);
    }

    /// This table with another's entries, which win.
    #[must_use]
    pub fn extended(mut self, other: Self) -> Self {
        for (image, program) in other.programs {
            self.insert(&image, program);
        }
        self
    }

    /// The table for pods that have a network of their own: additions that tell a program the
    /// pod's address are left out, so that it listens where it would in a container.
    #[must_use]
    pub fn without_addresses(mut self) -> Self {
        for program in self.programs.values_mut() {
            let address = |arg: &String| arg.contains("$(POD_IP)");
            program
                .additions
                .retain(|addition| !addition.args.iter().any(address));
        }
        self
    }

    /// The program of an image.
    pub fn get(&self, image: &str) -> Option<&Program> {
        self.programs.get(&split(image).0)
    }

    /// What a container runs: its own command, or its image's program.
    pub fn invocation<'a>(
        &'a self,
        container: &'a Container,
        as_root: bool,
    ) -> Result<Invocation<'a>, ImageError> {
        let image = container.image.as_deref().unwrap_or_default();
        let entry = self.get(image);
        let command = container.command.as_deref().unwrap_or_default();
        let given = container.args.as_deref().unwrap_or_default();
        let (mut argv, program) = match (command.first(), entry) {
            (Some(first), entry) => {
                let own = entry.filter(|entry| entry.is_run_by(first));
                ([command, given].concat(), own)
            }
            (None, Some(entry)) if entry.default_only && !given.is_empty() => {
                (given.to_vec(), None)
            }
            (None, Some(entry)) => {
                let args = if given.is_empty() { &entry.args } else { given };
                (
                    [std::slice::from_ref(&entry.program), args].concat(),
                    Some(entry),
                )
            }
            (None, None) => return Err(ImageError::Unknown(image.to_owned())),
        };
        for addition in program.iter().flat_map(|program| &program.additions) {
            let said = argv.iter().skip(1).any(|arg| addition.is_said_by(arg));
            if !said && (as_root || !addition.as_root_only) {
                argv.extend(addition.args.iter().cloned());
            }
        }
        Ok(Invocation {
            argv,
            program,
            tag: tag(image),
        })
    }
}

impl Addition {
    /// Whether an argument is one of the flags that make this addition needless: the flag itself,
    /// `--flag=value`, or the glued `-fvalue` of a short one.
    fn is_said_by(&self, arg: &str) -> bool {
        self.unless.iter().any(|flag| {
            arg.strip_prefix(flag.as_str()).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('=') || !flag.starts_with("--")
            })
        })
    }
}

impl Program {
    /// A program that needs to be told nothing.
    fn named(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            args: Vec::new(),
            default_only: false,
            additions: Vec::new(),
            user: None,
            env: BTreeMap::new(),
            version_args: Vec::new(),
            exact: false,
            package: None,
        }
    }

    /// Whether a container's own command is this program. A shell is nobody's own.
    fn is_run_by(&self, command: &str) -> bool {
        !self.default_only && Path::new(command).file_name() == Path::new(&self.program).file_name()
    }

    /// The error for a program that is not on this machine.
    pub fn not_installed(&self, image: &str) -> ImageError {
        let hint = self
            .package
            .as_ref()
            .map(|package| format!("; install it, for example with: apt-get install {package}"));
        ImageError::NotInstalled {
            image: image.to_owned(),
            program: self.program.clone(),
            hint: hint.unwrap_or_default(),
        }
    }
}

/// Whether a version satisfies a tag: `1.6.6`, `v1.6.6` and `1.6.6-alpine` want 1.6.6, `1.6` wants
/// any of that line, and a tag that is no version (`latest`) wants any.
pub fn satisfies(version: &str, tag: &str) -> bool {
    let wanted = tag.strip_prefix('v').unwrap_or(tag);
    let wanted = wanted.split('-').next().unwrap_or_default();
    if !wanted.starts_with(|c: char| c.is_ascii_digit()) {
        return true;
    }
    version
        .strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The first thing in a program's output that looks like a version: digits with dots.
pub fn version_in(output: &str) -> Option<&str> {
    output
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'))
        .find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            let looks = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
            looks.then(|| word.trim_end_matches('.'))
        })
}

/// Finds a program as a shell would: by its path, or in the folders of `PATH`.
pub fn find(program: &str, path: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return is_executable(Path::new(program)).then(|| PathBuf::from(program));
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The name of an image in the table, and its tag.
fn split(image: &str) -> (String, Option<&str>) {
    let without_digest = image.split_once('@').map_or(image, |(name, _)| name);
    // A colon before the last slash belongs to the registry's port.
    let slash = without_digest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match without_digest[slash..].find(':') {
        Some(colon) => {
            let colon = slash + colon;
            (&without_digest[..colon], Some(&without_digest[colon + 1..]))
        }
        None => (without_digest, None),
    };
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    (
        name.strip_prefix("library/").unwrap_or(name).to_owned(),
        tag,
    )
}

fn tag(image: &str) -> Option<&str> {
    split(image).1
}

#[cfg(test)]
mod tests;
