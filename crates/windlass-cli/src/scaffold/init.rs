//! `init`: a new project.

use std::fs;
use std::path::{Path, PathBuf};

use minijinja::context;

use super::plan::{Plan, Written};
use super::render::render;
use crate::error::{Error, Result, at};
use crate::project::{FILE, LAYOUT, Project, check_label};

/// What a new project is to be.
pub(crate) struct NewProject {
    pub(crate) folder: PathBuf,
    pub(crate) domain: String,
    pub(crate) name: Option<String>,
    pub(crate) repo: Option<String>,
    /// A checkout to take the crates from, until they are published; its lock file comes with
    /// them, so that a project begins with the versions that they were tested with.
    pub(crate) windlass: Option<PathBuf>,
}

/// Writes a project, and answers where.
pub(crate) fn init(new: &NewProject) -> Result<(PathBuf, Project, Vec<Written>)> {
    for label in new.domain.split('.') {
        check_label("domain", label)?;
    }
    let root = absolute(&new.folder)?;
    let name = name_of(new, &root)?;
    let project = Project {
        domain: new.domain.clone(),
        layout: LAYOUT.to_owned(),
        project_name: name.clone(),
        repo: new.repo.clone(),
        resources: Vec::new(),
    };
    if root.exists() && !root.is_dir() {
        return Err(Error::Other(format!(
            "{} is a file; give a folder for the project",
            root.display()
        )));
    }
    if root.join(FILE).is_file() {
        let (_, found) = Project::find(&root)?;
        if (&found.domain, &found.project_name, &found.repo)
            != (&project.domain, &project.project_name, &project.repo)
        {
            return Err(Error::Other(format!(
                "{} is already the project {} of domain {}; add to it with `windlass create api`",
                root.display(),
                found.project_name,
                found.domain
            )));
        }
        return Ok((root, found, Vec::new()));
    }
    let values = context! {
        name,
        crate_name => project.crate_name(),
        repository => new.repo.as_deref().map(repository),
        windlass => dependency(new.windlass.as_deref(), "windlass")?,
        windlass_cluster => dependency(new.windlass.as_deref(), "windlass-cluster")?,
        standalone => !is_member(&root),
    };
    let mut plan = Plan::new(&root);
    for (path, template) in [
        ("Cargo.toml", "project/Cargo.toml.j2"),
        ("Dockerfile", "project/Dockerfile.j2"),
        (".dockerignore", "project/dockerignore"),
        (".gitignore", "project/gitignore"),
        (".github/workflows/ci.yml", "project/ci.yml.j2"),
        ("Makefile", "project/Makefile.j2"),
        ("README.md", "project/README.md.j2"),
        ("src/lib.rs", "project/lib.rs.j2"),
        ("src/main.rs", "project/main.rs.j2"),
        ("tests/operator.rs", "project/operator_test.rs.j2"),
    ] {
        plan.create(path, render(template, values.clone())?)?;
    }
    if let Some(checkout) = new.windlass.as_deref().filter(|_| !is_member(&root)) {
        let path = checkout.join("Cargo.lock");
        let lock = fs::read_to_string(&path).map_err(at(&path))?;
        plan.create("Cargo.lock", lock)?;
    }
    plan.format();
    plan.create(FILE, project.text()?)?;
    let written = plan.write()?;
    Ok((root, project, written))
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    std::path::absolute(folder).map_err(at(folder))
}

/// The name given, that of the folder, or the last part of the repository's.
fn name_of(new: &NewProject, root: &Path) -> Result<String> {
    if let Some(name) = &new.name {
        check_name(name)?;
        return Ok(name.clone());
    }
    let folder = root.file_name().and_then(|name| name.to_str());
    let repo = new.repo.as_deref().and_then(|repo| repo.rsplit('/').next());
    let found = [folder, repo]
        .into_iter()
        .flatten()
        .map(|name| name.to_lowercase().replace(['_', '.', ' '], "-"))
        .find(|name| check_name(name).is_ok());
    found.ok_or_else(|| {
        Error::Other(format!(
            "the folder {} does not give a name for the operator; choose one with --name",
            root.display()
        ))
    })
}

/// A name is a DNS label, with room for what is added to it, and the name of a crate.
fn check_name(name: &str) -> Result<()> {
    check_label("name", name)?;
    if name.len() > 40 {
        return Err(Error::Other(format!(
            "the name {name} has {} characters; at most 40 leave room for what is added to it",
            name.len()
        )));
    }
    if !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        return Err(Error::Other(format!(
            "the name {name:?} must begin with a letter: it is the name of a crate too"
        )));
    }
    if [
        "windlass",
        "windlass-cluster",
        "kube",
        "serde",
        "serde_json",
        "schemars",
        "k8s-openapi",
        "test",
        "core",
        "std",
    ]
    .contains(&name)
    {
        return Err(Error::Other(format!(
            "the name {name} is that of a crate the project uses; choose another with --name"
        )));
    }
    Ok(())
}

fn repository(repo: &str) -> String {
    if repo.contains("://") {
        return repo.to_owned();
    }
    format!("https://{repo}")
}

/// How Cargo finds one of Windlass' crates.
fn dependency(windlass: Option<&Path>, name: &str) -> Result<String> {
    let Some(checkout) = windlass else {
        return Ok(format!("\"{}\"", env!("CARGO_PKG_VERSION")));
    };
    let path = checkout.join("crates").join(name);
    let path = fs::canonicalize(&path).map_err(|_| {
        Error::Other(format!(
            "--windlass-path {} is not a checkout of Windlass: {} is missing",
            checkout.display(),
            path.display()
        ))
    })?;
    Ok(format!("{{ path = {:?} }}", path.display().to_string()))
}

/// Whether a workspace above takes the folder in.
fn is_member(root: &Path) -> bool {
    root.ancestors().skip(1).any(|above| {
        let Ok(text) = fs::read_to_string(above.join("Cargo.toml")) else {
            return false;
        };
        let Some((_, workspace)) = text.split_once("[workspace]") else {
            return false;
        };
        let Some((_, members)) = workspace.split_once("members") else {
            return false;
        };
        let members = members.split(']').next().unwrap_or_default();
        let Ok(path) = root.strip_prefix(above) else {
            return false;
        };
        let path = path.to_string_lossy();
        members
            .split('"')
            .skip(1)
            .step_by(2)
            .any(|member| match member.strip_suffix("/*") {
                Some(folder) => path
                    .strip_prefix(folder)
                    .and_then(|rest| rest.strip_prefix('/'))
                    .is_some_and(|rest| !rest.contains('/')),
                None => member == path,
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(folder: &Path) -> NewProject {
        NewProject {
            folder: folder.to_owned(),
            domain: "example.com".to_owned(),
            name: None,
            repo: Some("demo.domain/demo-operator".to_owned()),
            windlass: None,
        }
    }

    #[test]
    fn a_second_time_changes_nothing_and_another_domain_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut new = new(&folder.path().join("my-operator"));
        let (_, project, written) = init(&new).unwrap();
        assert_eq!(project.project_name, "my-operator");
        assert_eq!(written.len(), 11);
        assert_eq!(init(&new).unwrap().2, []);
        new.domain = "other.org".to_owned();
        let message = init(&new).err().unwrap().to_string();
        assert!(
            message.contains("already the project my-operator of domain example.com"),
            "{message}"
        );
    }

    #[test]
    fn a_folder_that_gives_no_name_falls_back_to_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let (_, project, _) = init(&new(&folder.path().join("123"))).unwrap();
        assert_eq!(project.project_name, "demo-operator");
    }

    #[test]
    fn files_of_somebody_else_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("my-operator");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("src/main.rs"), "fn main() {}\n").unwrap();
        let message = init(&new(&root)).err().unwrap().to_string();
        assert!(message.contains("src/main.rs (as it is)"), "{message}");
        assert!(!root.join(FILE).exists());
    }

    #[test]
    fn a_workspace_above_takes_its_members_in() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("Cargo.toml"),
            "[workspace]\nmembers = [\"operators/*\", \"one\"]\n",
        )
        .unwrap();
        for (path, member) in [
            ("operators/a", true),
            ("one", true),
            ("two", false),
            ("operators/a/b", false),
        ] {
            assert_eq!(is_member(&folder.path().join(path)), member, "{path}");
        }
    }
}
