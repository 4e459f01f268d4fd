//! `create api`: a kind, its controller, its test and its sample; or another version of a kind.

use std::path::Path;

use minijinja::{Value, context};

use super::edit::{add_item, append_call};
use super::plan::{Plan, Written};
use super::render::{article, render};
use super::version::another_version;
use crate::error::{Error, Result};
use crate::project::{Api, FILE, Project, Resource, snake};

/// What a new kind is to be.
pub(crate) struct NewApi {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: Option<String>,
    pub(crate) short_names: Vec<String>,
    pub(crate) namespaced: bool,
}

/// Adds a kind to the project of a folder.
pub(crate) fn create_api(folder: &Path, new: &NewApi) -> Result<(Resource, Vec<Written>)> {
    let (root, mut project) = Project::find(folder)?;
    let earlier: Vec<Resource> = project.versions(&new.group, &new.kind).cloned().collect();
    let resource = resource(&project, new, &earlier)?;
    clashes(&project, &resource)?;
    let mut plan = Plan::new(&root);
    let module = project.module(&new.group, &new.kind);
    match earlier.first() {
        Some(first) if earlier.iter().all(|one| one.version != new.version) => {
            another_version(&root, &mut plan, &module, first, &earlier, &resource)?;
        }
        // Again, after the files may have been changed: they are the author's.
        Some(_) => return Ok((resource, Vec::new())),
        None => first_version(&mut plan, &project, &module, &resource)?,
    }
    plan.format();
    project.resources.push(resource.clone());
    plan.keep(FILE, project.text()?)?;
    Ok((resource, plan.write()?))
}

/// The resource; a later version of a kind has the names of the first.
fn resource(project: &Project, new: &NewApi, earlier: &[Resource]) -> Result<Resource> {
    let api = Api {
        namespaced: new.namespaced,
        short_names: new.short_names.clone(),
    };
    let mut resource = Resource::own(
        &project.domain,
        &new.group,
        &new.version,
        &new.kind,
        new.plural.as_deref(),
        api,
    )?;
    let Some(first) = earlier.first() else {
        return Ok(resource);
    };
    if let Some(plural) = &new.plural
        && *plural != first.plural
    {
        return Err(Error::Other(format!(
            "the plural of {} is {}, and all versions of a kind share it",
            new.kind, first.plural
        )));
    }
    if !new.namespaced && first.api.as_ref().is_some_and(|api| api.namespaced) {
        return Err(Error::Other(format!(
            "{} is namespaced, and so are all its versions",
            new.kind
        )));
    }
    let short_names = first.api.as_ref().map_or(&[][..], |api| &api.short_names);
    if let Some(name) = new
        .short_names
        .iter()
        .find(|name| !short_names.contains(name))
    {
        return Err(Error::Other(format!(
            "all versions of {} share its short names, and {name} is not one of them; add it to `#[kube(…)]` of every version",
            new.kind
        )));
    }
    resource.plural.clone_from(&first.plural);
    resource.api.clone_from(&first.api);
    Ok(resource)
}

/// Two kinds of a group cannot share a name: the API server would serve only one of them.
fn clashes(project: &Project, resource: &Resource) -> Result<()> {
    let others = project.resources.iter().filter(|other| {
        other.api.is_some() && other.group == resource.group && other.kind != resource.kind
    });
    for other in others {
        let taken = names_of(other);
        let Some(name) = names_of(resource)
            .into_iter()
            .find(|name| taken.contains(name))
        else {
            continue;
        };
        let remedy = if name == resource.kind.to_lowercase() {
            "choose another kind".to_owned()
        } else if name == resource.plural {
            format!("give {} another plural with --plural", resource.kind)
        } else {
            format!("give {} another with --shortname", resource.kind)
        };
        return Err(Error::Other(format!(
            "{} has the name {name} already; {remedy}",
            other.shown()
        )));
    }
    Ok(())
}

/// What kubectl may call a kind.
fn names_of(resource: &Resource) -> Vec<String> {
    let short = resource.api.iter().flat_map(|api| api.short_names.clone());
    let mut names = vec![resource.plural.clone(), resource.kind.to_lowercase()];
    names.extend(short);
    names
}

/// What the templates of a kind need.
pub(super) fn values(project_name: &str, module: &str, resource: &Resource) -> Value {
    let api = resource.api.clone();
    let kind = &resource.kind;
    context! {
        name => project_name,
        crate_name => project_name.replace('-', "_"),
        module,
        kind,
        a_kind => capital(&format!("{} {kind}", article(kind))),
        lower => kind.to_lowercase(),
        var => variable(kind),
        plural => &resource.plural,
        version => &resource.version,
        full_group => resource.full_group(),
        namespaced => api.as_ref().is_none_or(|api| api.namespaced),
        short_names => api.map(|api| api.short_names).unwrap_or_default(),
    }
}

/// A name for an object of the kind.
pub(super) fn variable(kind: &str) -> String {
    let module = crate::project::module_of(kind);
    let name = if module == snake(kind) {
        module
    } else {
        "object".to_owned()
    };
    // Names that the generated functions use for something else.
    if [
        "cluster", "message", "operator", "ctx", "status", "map", "verdict", "name", "create",
        "change",
    ]
    .contains(&name.as_str())
    {
        return "object".to_owned();
    }
    name
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn first_version(
    plan: &mut Plan,
    project: &Project,
    module: &str,
    resource: &Resource,
) -> Result<()> {
    let values = values(&project.project_name, module, resource);
    for (path, template) in [
        (format!("src/{module}.rs"), "kind/kind.rs.j2"),
        (
            format!("src/{module}/{}.rs", resource.version),
            "kind/version.rs.j2",
        ),
        (
            format!("src/{module}/controller.rs"),
            "kind/controller.rs.j2",
        ),
        (format!("tests/{module}.rs"), "kind/test.rs.j2"),
    ] {
        plan.create(path, render(template, values.clone())?)?;
    }
    plan.edit("src/lib.rs", |text| {
        let text = add_item(text, &format!("pub mod {module};"))?;
        let text = append_call(
            &text,
            "operator",
            &format!(".controller({module}::controller())"),
        )?;
        append_call(&text, "operator", &format!(".sample(&{module}::sample())"))
    })
}
