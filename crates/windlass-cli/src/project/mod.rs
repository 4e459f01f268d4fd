//! A project: a folder with a `PROJECT` file, which records what the command created there.

mod builtin;
mod plural;
mod resource;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use builtin::builtin;
#[cfg(test)]
pub(crate) use resource::is_taken;
pub(crate) use resource::{Api, Resource, check_label, module_of, snake};

use crate::error::{Error, Result, at};

/// The name of the file.
pub(crate) const FILE: &str = "PROJECT";

/// What a project is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Project {
    pub(crate) domain: String,
    pub(crate) layout: String,
    #[expect(clippy::struct_field_names, reason = "it is a line of the file")]
    pub(crate) project_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repo: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<Resource>,
}

/// The layout of the files that this version of the command makes.
pub(crate) const LAYOUT: &str = "windlass/v1";

impl Project {
    /// The project that a folder, or one above it, belongs to.
    pub(crate) fn find(folder: &Path) -> Result<(PathBuf, Self)> {
        let folder = fs::canonicalize(folder).map_err(at(folder))?;
        let Some(root) = folder
            .ancestors()
            .find(|folder| folder.join(FILE).is_file())
        else {
            return Err(Error::Other(format!(
                "{} is not in a project: there is no PROJECT file here or above; make one with `windlass init --domain example.com`",
                folder.display()
            )));
        };
        let path = root.join(FILE);
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        let project: Self = serde_saphyr::from_str(&text)
            .map_err(|error| Error::Other(format!("cannot read {}: {error}", path.display())))?;
        if project.layout != LAYOUT {
            return Err(Error::Other(format!(
                "{} says layout {:?}; this windlass knows {LAYOUT:?} only",
                path.display(),
                project.layout
            )));
        }
        Ok((root.to_owned(), project))
    }

    /// The file's text.
    pub(crate) fn text(&self) -> Result<String> {
        let yaml = serde_saphyr::to_string(self)
            .map_err(|error| Error::Other(format!("cannot write the PROJECT file: {error}")))?;
        Ok(format!(
            "# What `windlass` created here. It reads this file to go on from there.\n{yaml}"
        ))
    }

    /// The name of the library in code.
    pub(crate) fn crate_name(&self) -> String {
        self.project_name.replace('-', "_")
    }

    /// The versions of a kind of the project's own, in the order they were created.
    pub(crate) fn versions<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = &'a Resource> {
        self.resources
            .iter()
            .filter(move |resource| resource.api.is_some() && resource.is_of(group, kind))
    }

    /// The module of a kind: the kind's name, after its group's where two groups have that kind.
    pub(crate) fn module(&self, group: &str, kind: &str) -> String {
        let first = self.resources.iter().find(|resource| resource.kind == kind);
        match first {
            Some(first) if first.group != group => {
                format!("{}_{}", snake_group(group), snake(kind))
            }
            _ => module_of(kind),
        }
    }
}

fn snake_group(group: &str) -> String {
    match group {
        "" => "core".to_owned(),
        group => group.replace(['-', '.'], "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, kind: &str) -> Resource {
        let api = Api {
            namespaced: true,
            short_names: vec!["mc".to_owned()],
        };
        Resource::own("example.com", group, "v1", kind, None, api).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project {
            domain: "example.com".to_owned(),
            layout: LAYOUT.to_owned(),
            project_name: "my-operator".to_owned(),
            repo: Some("github.com/me/my-operator".to_owned()),
            resources: vec![resource("cache", "Memcached")],
        };
        fs::write(folder.path().join(FILE), project.text().unwrap()).unwrap();
        let below = folder.path().join("src/deep");
        fs::create_dir_all(&below).unwrap();
        let (root, found) = Project::find(&below).unwrap();
        assert_eq!(root, fs::canonicalize(folder.path()).unwrap());
        assert_eq!(found, project);
    }

    #[test]
    fn a_folder_without_a_project_says_how_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let message = Project::find(folder.path()).unwrap_err().to_string();
        assert!(message.contains("windlass init"), "{message}");
        fs::write(folder.path().join(FILE), "layout: [").unwrap();
        let message = Project::find(folder.path()).unwrap_err().to_string();
        assert!(message.contains("PROJECT"), "{message}");
    }

    #[test]
    fn a_kind_of_two_groups_has_two_modules() {
        let mut project = Project {
            domain: "example.com".to_owned(),
            layout: LAYOUT.to_owned(),
            project_name: "x".to_owned(),
            repo: None,
            resources: Vec::new(),
        };
        assert_eq!(project.module("cache", "Node"), "node");
        project.resources.push(resource("cache", "Node"));
        assert_eq!(project.module("cache", "Node"), "node");
        assert_eq!(project.module("big-data", "Node"), "big_data_node");
    }
}
