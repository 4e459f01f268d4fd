//! `manifests`: the operator as YAML: printed, written into folders, or compared with what is there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, json};
use windlass_manifests::{File, Installation, MARK, manifests, to_yaml, tree};

use super::{
    output::{Output, as_text},
    print,
};
use crate::{Error, Operator, Result};

#[derive(Debug, Args)]
pub(super) struct Manifests {
    /// The namespace the operator shall run in.
    #[arg(long)]
    namespace: Option<String>,
    /// The image of the operator's program.
    #[arg(long)]
    image: Option<String>,
    /// Write config/ and dist/install.yaml into this folder instead of printing everything.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write nothing; fail and name the files when those in the folder (this one unless --out names
    /// another) are not what would be written.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    output: Output,
}

pub(super) fn obey(operator: &Operator, options: Manifests) -> Result<()> {
    let description = operator.description();
    let mut installation = Installation::of(&description);
    if let Some(namespace) = options.namespace {
        installation.namespace = namespace;
    }
    if let Some(image) = options.image {
        installation.image = image;
    }
    let folder = match (options.out, options.check) {
        (Some(folder), _) => folder,
        (None, true) => PathBuf::from("."),
        (None, false) => {
            let manifests = manifests(&description, &installation).map_err(Error::other)?;
            return print(&to_yaml(&manifests).map_err(Error::other)?);
        }
    };
    let files = tree(&description, &installation).map_err(Error::other)?;
    let stale = stale(&folder, &files)?;
    if options.check {
        if stale.is_empty() {
            return options.output.print(&json!({"files": []}), "");
        }
        let names: Vec<String> = stale.iter().map(Stale::describe).collect();
        return Err(Error::other(format!(
            "{} of the manifests in {} are not what `{} manifests --out {}` writes:\n{}",
            stale.len(),
            folder.display(),
            operator.name(),
            folder.display(),
            names.join("\n")
        )));
    }
    for one in &stale {
        one.mend(&folder)?;
    }
    let lines: Vec<String> = stale.iter().map(Stale::describe).collect();
    let facts: Value = stale.iter().map(Stale::fact).collect();
    options
        .output
        .print(&json!({"files": facts}), &as_text(&lines))
}

/// A file that is not as it should be.
enum Stale<'a> {
    Missing(&'a File),
    Differs(&'a File),
    /// One of ours that is no longer written.
    Surplus(String),
}

impl Stale<'_> {
    fn describe(&self) -> String {
        match self {
            Self::Missing(file) => format!("  new      {}", file.path),
            Self::Differs(file) => format!("  changed  {}", file.path),
            Self::Surplus(path) => format!("  removed  {path}"),
        }
    }

    fn fact(&self) -> Value {
        match self {
            Self::Missing(file) => json!({"path": file.path, "change": "new"}),
            Self::Differs(file) => json!({"path": file.path, "change": "changed"}),
            Self::Surplus(path) => json!({"path": path, "change": "removed"}),
        }
    }

    fn mend(&self, folder: &Path) -> Result<()> {
        let told = |path: &str, verb: &str, result: io::Result<()>| {
            result.map_err(|error| {
                Error::other(format!(
                    "cannot {verb} {}: {error}",
                    folder.join(path).display()
                ))
            })
        };
        match self {
            Self::Missing(file) | Self::Differs(file) => {
                let path = folder.join(&file.path);
                let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
                told(&file.path, "write", parent)?;
                // Whole or not at all: nobody applies half a file.
                let draft = path.with_extension("new");
                let written =
                    fs::write(&draft, &file.text).and_then(|()| fs::rename(&draft, &path));
                if written.is_err() {
                    let _ = fs::remove_file(&draft);
                }
                told(&file.path, "write", written)
            }
            Self::Surplus(path) => told(path, "remove", fs::remove_file(folder.join(path))),
        }
    }
}

fn stale<'a>(folder: &Path, files: &'a [File]) -> Result<Vec<Stale<'a>>> {
    let mut stale = Vec::new();
    for file in files {
        match read(&folder.join(&file.path))? {
            None => stale.push(Stale::Missing(file)),
            Some(text) if text != file.text => stale.push(Stale::Differs(file)),
            Some(_) => {}
        }
    }
    let mut known = Vec::new();
    for top in ["config", "dist"] {
        below(folder, top, &mut known)?;
    }
    known.sort_unstable();
    for path in known {
        let ours = |text: String| text.starts_with(MARK);
        if !files.iter().any(|file| file.path == path)
            && read(&folder.join(&path))?.is_some_and(ours)
        {
            stale.push(Stale::Surplus(path));
        }
    }
    Ok(stale)
}

/// The YAML files below a folder, and the kustomizations.
fn below(root: &Path, folder: &str, found: &mut Vec<String>) -> Result<()> {
    let told = |error: io::Error| Error::other(format!("cannot read {folder}: {error}"));
    let entries = match fs::read_dir(root.join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(told(error)),
    };
    for entry in entries {
        let entry = entry.map_err(told)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{folder}/{name}");
        if entry.file_type().map_err(told)?.is_dir() {
            below(root, &path, found)?;
        } else if path.rsplit('.').next() == Some("yaml") || name == "Kustomization" {
            found.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::other(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(out: &Path, check: bool) -> Manifests {
        Manifests {
            namespace: None,
            image: None,
            out: Some(out.to_owned()),
            check,
            output: Output::default(),
        }
    }

    #[test]
    fn a_check_names_what_is_stale_and_writing_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let operator = Operator::new("thing-operator");
        let check = || obey(&operator, options(root, true));
        let message = check().unwrap_err().to_string();
        assert!(message.contains("new      dist/install.yaml"), "{message}");
        obey(&operator, options(root, false)).unwrap();
        check().unwrap();
        // What others put there is theirs.
        fs::write(root.join("config/rbac/own.yaml"), "kind: Role\n").unwrap();
        check().unwrap();
        fs::write(root.join("config/rbac/old.yaml"), format!("{MARK}x`\n")).unwrap();
        fs::write(root.join("dist/install.yaml"), "").unwrap();
        fs::remove_file(root.join("config/rbac/role.yaml")).unwrap();
        let message = check().unwrap_err().to_string();
        let lines: Vec<&str> = message.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "  new      config/rbac/role.yaml",
                "  changed  dist/install.yaml",
                "  removed  config/rbac/old.yaml",
            ]
        );
        obey(&operator, options(root, false)).unwrap();
        check().unwrap();
        assert!(root.join("config/rbac/own.yaml").exists());
    }
}
