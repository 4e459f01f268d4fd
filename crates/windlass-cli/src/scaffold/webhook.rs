//! `create webhook`: defaults and checks for a kind of the project or of Kubernetes.

use std::path::Path;

use minijinja::{Value, context};

use super::api::values;
use super::edit::{Refusal, add_item, append_call, before_tests};
use super::plan::{Plan, Written};
use super::render::{article, render};
use crate::error::{Error, Result};
use crate::project::{FILE, Project, Resource, builtin};

/// What a webhook is to do.
pub(crate) struct NewWebhook {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) defaulting: bool,
    pub(crate) validation: bool,
    pub(crate) conversion: bool,
    /// `Create`, `Update`: when not both.
    pub(crate) operations: Option<Vec<String>>,
}

/// Adds a webhook to the project of a folder.
pub(crate) fn create_webhook(folder: &Path, new: &NewWebhook) -> Result<(Resource, Vec<Written>)> {
    let (root, mut project) = Project::find(folder)?;
    let (index, type_path) = place(&mut project, new)?;
    let mut resource = project.resources[index].clone();
    let before = resource.webhooks;
    if new.conversion {
        check_conversion(&project, &resource)?;
    }
    resource.webhooks.defaulting |= new.defaulting;
    resource.webhooks.validation |= new.validation;
    resource.webhooks.conversion |= new.conversion;
    let module = project.module(&resource.group, &resource.kind);
    let mut plan = Plan::new(&root);
    if new.defaulting || new.validation {
        let path = format!("src/{module}/webhook.rs");
        let (old, both) = (before, resource.webhooks);
        if old.defaulting || old.validation {
            // A file that was made before is its author's: only what is missing is added to it.
            if (old.defaulting, old.validation) != (both.defaulting, both.validation) {
                let (kind, var) = (&resource.kind, super::api::variable(&resource.kind));
                let (mut call, function) =
                    addition(kind, &var, !old.defaulting, &project.project_name);
                let restricted = restriction(new, !old.defaulting);
                call.extend(restricted.as_deref());
                plan.edit(path, |text| {
                    let mut text = add_to_chain(text, &call)?;
                    for name in [
                        ("Verdict", old.defaulting),
                        ("Operation", restricted.is_some()),
                    ]
                    .iter()
                    .filter_map(|(name, wanted)| wanted.then_some(name))
                    {
                        text = import(&text, name)?;
                    }
                    Ok(before_tests(&text, &function))
                })?;
            }
        } else {
            let text = render(
                "kind/webhook.rs.j2",
                filled(&project, &module, &resource, new, type_path.as_deref()),
            )?;
            plan.create(path, text)?;
            own_module(&mut plan, &module, &resource)?;
            plan.edit("src/lib.rs", |text| {
                let text = add_item(text, &format!("pub mod {module};"))?;
                append_call(&text, "operator", &format!(".webhook({module}::webhook())"))
            })?;
        }
    }
    plan.format();
    project.resources[index] = resource.clone();
    plan.keep(FILE, project.text()?)?;
    Ok((resource, plan.write()?))
}

/// The entry of the kind, made when it is one of Kubernetes', and the path of its type then.
fn place(project: &mut Project, new: &NewWebhook) -> Result<(usize, Option<String>)> {
    let of = |resource: &Resource, group: &str| {
        resource.is_of(group, &new.kind) && resource.version == new.version
    };
    if let Some(index) = project
        .resources
        .iter()
        .position(|one| of(one, &new.group) && one.api.is_some())
    {
        return Ok((index, None));
    }
    let Some((resource, path)) = builtin(&new.group, &new.version, &new.kind) else {
        return Err(Error::Other(format!(
            "there is no {} {} of group {} in this project, and Kubernetes has none; create it with `windlass create api --group {} --version {} --kind {}`",
            new.version, new.kind, new.group, new.group, new.version, new.kind
        )));
    };
    if new.conversion {
        return Err(Error::Other(format!(
            "{} belongs to Kubernetes, which converts it itself",
            new.kind
        )));
    }
    let group = resource.group.clone();
    let known = project.resources.iter().position(|one| of(one, &group));
    let index = known.unwrap_or_else(|| {
        project.resources.push(resource);
        project.resources.len() - 1
    });
    Ok((index, Some(path)))
}

/// Conversion comes with the second version of a kind.
fn check_conversion(project: &Project, resource: &Resource) -> Result<()> {
    if project.versions(&resource.group, &resource.kind).count() > 1 {
        return Ok(());
    }
    Err(Error::Other(format!(
        "{} has one version, so there is nothing to convert; add one with `windlass create api --group {} --version v2 --kind {}`, which writes the conversion too",
        resource.kind, resource.group, resource.kind
    )))
}

fn filled(
    project: &Project,
    module: &str,
    resource: &Resource,
    new: &NewWebhook,
    type_path: Option<&str>,
) -> Value {
    let operations = new.operations.clone().unwrap_or_default();
    context! {
        builtin => type_path.is_some(),
        type_path => type_path.unwrap_or_default(),
        domain => &project.domain,
        defaulting => resource.webhooks.defaulting,
        validation => resource.webhooks.validation,
        restricted => operations.len() == 1,
        operations => operations
            .iter()
            .map(|operation| format!("Operation::{operation}"))
            .collect::<Vec<_>>()
            .join(", "),
        some_kind => format!("{} {}", article(&resource.kind), resource.kind),
        ..values(&project.project_name, module, resource)
    }
}

/// The kind's module knows of the webhook; a kind of Kubernetes gets a module now.
fn own_module(plan: &mut Plan, module: &str, resource: &Resource) -> Result<()> {
    let path = format!("src/{module}.rs");
    if resource.api.is_none() {
        return plan.create(
            path,
            format!(
                "//! What this operator has to say about {}.\n\nmod webhook;\n\npub use self::webhook::webhook;\n",
                resource.plural
            ),
        );
    }
    plan.edit(path, |text| {
        let text = add_item(text, "mod webhook;")?;
        add_item(&text, "pub use self::webhook::webhook;")
    })
}

/// The call and the function that a webhook lacks.
fn addition(kind: &str, var: &str, defaulting: bool, operator: &str) -> (String, String) {
    if defaulting {
        let function = format!(
            "fn fill_in({var}: &mut {kind}) {{\n    let label = \"app.kubernetes.io/managed-by\".to_owned();\n    {var}.labels_mut().entry(label).or_insert_with(|| \"{operator}\".to_owned());\n}}"
        );
        (".defaulting(fill_in)".to_owned(), function)
    } else {
        let function = format!(
            "fn judge({var}: &{kind}, _: Option<&{kind}>) -> Verdict {{\n    let mut verdict = Verdict::allow();\n    let name = {var}.name_any();\n    if name.len() > 52 {{\n        verdict.invalid(\"metadata.name\", name, \"must be no more than 52 characters\");\n    }}\n    verdict\n}}"
        );
        (".validating(judge)".to_owned(), function)
    }
}

/// The call that limits a webhook to some operations.
fn restriction(new: &NewWebhook, defaulting: bool) -> Option<String> {
    let [operation] = new.operations.as_deref()? else {
        return None;
    };
    let call = if defaulting {
        "defaulting_on"
    } else {
        "validating_on"
    };
    Some(format!(".{call}([Operation::{operation}])"))
}

/// Adds a name to what is imported from the framework.
fn import(text: &str, name: &str) -> std::result::Result<String, Refusal> {
    let start = "use windlass::webhook::{";
    let Some(index) = text.find(start) else {
        return add_item(text, &format!("use windlass::webhook::{name};"));
    };
    let (before, rest) = text.split_at(index + start.len());
    let names = rest.split('}').next().unwrap_or_default();
    if names.split(',').any(|one| one.trim() == name) {
        return Ok(text.to_owned());
    }
    Ok(format!("{before}{name}, {rest}"))
}

/// Adds a call right after `Webhook::of::<…>()`, because the chain ends in `into()`.
fn add_to_chain(text: &str, call: &str) -> std::result::Result<String, Refusal> {
    let refused = || Refusal::NoFunction {
        function: "webhook".to_owned(),
        call: call.to_owned(),
    };
    let start = text.find("Webhook::of::<").ok_or_else(refused)?;
    let end = start + text[start..].find(">()").ok_or_else(refused)? + ">()".len();
    Ok(format!("{}\n        {call}{}", &text[..end], &text[end..]))
}
