//! Charts: what is in their folders and archives.

use std::path::Path;

use serde_json::{Map, Value};

use crate::Error;

mod archive;
mod directory;
mod ignore;
mod load;
mod metadata;
mod pattern;

pub(crate) use metadata::scalar_text;

pub use metadata::{Dependency, Maintainer, Metadata};

/// A file of a chart, by its name within the chart.
#[derive(Clone, Debug)]
pub struct File {
    /// The path within the chart, with slashes.
    pub name: String,
    /// What is in it.
    pub data: Vec<u8>,
}

/// A chart and those it depends on.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What `Chart.yaml` says.
    pub metadata: Metadata,
    /// The files of `templates/`.
    pub templates: Vec<File>,
    /// The files that are neither templates nor charts.
    pub files: Vec<File>,
    /// What `values.yaml` says.
    pub values: Map<String, Value>,
    /// The text of `values.yaml`, with its comments.
    pub values_text: Vec<u8>,
    /// `values.schema.json`.
    pub schema: Option<Vec<u8>>,
    /// The charts of `charts/`.
    pub dependencies: Vec<Chart>,
}

/// The files of a chart in a folder or a `.tgz`, without what its `.helmignore` names.
pub fn files(path: &Path) -> Result<Vec<File>, Error> {
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(failed)?.is_dir() {
        return directory::files(path);
    }
    archive_files(&std::fs::read(path).map_err(failed)?)
}

fn archive_files(bytes: &[u8]) -> Result<Vec<File>, Error> {
    let files = archive::files(bytes)?;
    if !files.iter().any(|file| file.name == "Chart.yaml") {
        return Err(Error::Chart(
            "unable to detect chart version, no Chart.yaml found".to_owned(),
        ));
    }
    Ok(files)
}

impl Chart {
    /// Reads a chart from a folder or a `.tgz`.
    pub fn load(path: &Path) -> Result<Self, Error> {
        load::load(files(path)?, 0)
    }

    /// Reads a chart from a folder, without what its `.helmignore` names.
    pub fn from_directory(path: &Path) -> Result<Self, Error> {
        load::load(directory::files(path)?, 0)
    }

    /// Reads a chart from an archive.
    pub fn from_archive(bytes: &[u8]) -> Result<Self, Error> {
        load::load(archive_files(bytes)?, 0)
    }

    /// Reads a chart from its files.
    pub fn from_files(files: Vec<File>) -> Result<Self, Error> {
        load::load(files, 0)
    }

    /// The chart's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether the chart has templates for others only.
    #[must_use]
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }

    /// The files of `crds/`, of this chart and those it depends on, by the paths Helm shows.
    #[must_use]
    pub fn crds(&self) -> Vec<File> {
        let mut found = Vec::new();
        self.collect_crds(self.name(), &mut found);
        found
    }

    fn collect_crds(&self, path: &str, found: &mut Vec<File>) {
        let is_manifest = |name: &str| {
            Path::new(name).extension().is_some_and(|extension| {
                ["yaml", "yml", "json"]
                    .iter()
                    .any(|known| extension.eq_ignore_ascii_case(known))
            })
        };
        for file in &self.files {
            if file.name.starts_with("crds/") && is_manifest(&file.name) {
                found.push(File {
                    name: format!("{path}/{}", file.name),
                    data: file.data.clone(),
                });
            }
        }
        for dependency in &self.dependencies {
            dependency.collect_crds(&format!("{path}/charts/{}", dependency.name()), found);
        }
    }
}
