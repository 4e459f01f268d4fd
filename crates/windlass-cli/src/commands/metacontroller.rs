//! `windlass metacontroller`: controllers whose logic is a hook.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use windlass::Operator;
use windlass_declarative::metacontroller::{Options, operator, operator_of_files};

use crate::error::{Error, Result};

/// Run controllers whose logic is a webhook or a program, as Metacontroller does
#[derive(Args)]
#[command(after_help = "Examples:
  windlass metacontroller install && windlass metacontroller run
  windlass metacontroller --files ./operator run    # the controllers are files, not objects
  windlass metacontroller --files ./operator rbac   # exactly what they may do")]
pub(crate) struct Metacontroller {
    /// The operator is the controllers and CRDs in the YAML files of this folder
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Let controllers that are objects in the cluster run programs as hooks
    #[arg(long, conflicts_with = "files")]
    exec_hooks: bool,
    /// What to do: run, manifests, install, uninstall, rbac, explain or version, with its flags
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

impl Metacontroller {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let operator = match &self.files {
            Some(folder) => of_files(folder)?,
            None => operator(Options {
                exec: self.exec_hooks,
                ..Options::default()
            }),
        };
        let name = OsString::from("windlass metacontroller");
        let line: Vec<OsString> = [name].into_iter().chain(self.command).collect();
        // The program of an operator brings its own runtime.
        let program = std::thread::spawn(move || windlass::run::main_from(|| operator, line));
        program
            .join()
            .map_err(|_| Error::Other("the operator panicked".to_owned()))
    }
}

/// The operator that the YAML files of a folder describe; its name is the folder's.
fn of_files(folder: &Path) -> Result<Operator> {
    let failed = |what: &Path, error: std::io::Error| {
        Error::Other(format!("cannot read {}: {error}", what.display()))
    };
    let absolute = folder
        .canonicalize()
        .map_err(|error| failed(folder, error))?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let path = entry.map_err(|error| failed(folder, error))?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut text = String::new();
    for path in paths {
        text += "---\n";
        text += &fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        text += "\n";
    }
    let name = absolute.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or("metacontroller");
    operator_of_files(name, &text, Options::default())
        .map_err(|error| Error::Other(format!("{}: {error}", folder.display())))
}
