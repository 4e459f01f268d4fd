//! `windlass create`.

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, Subcommand};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::helm::{self, NewHelmApi};
use crate::output::Output;
use crate::project::Resource;
use crate::scaffold::{self, NewApi, NewWebhook, Written, describe, facts};

/// Add a kind or a webhook to the project
#[derive(Subcommand)]
pub(crate) enum Create {
    Api(CreateApi),
    Webhook(CreateWebhook),
}

impl Create {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Api(api) => api.run(),
            Self::Webhook(webhook) => webhook.run(),
        }
    }
}

/// Add a kind: its type, its controller, its test and its sample; or another version of a kind
#[derive(Args)]
#[command(after_help = "Examples:
  windlass create api --group cache --version v1 --kind Memcached
  windlass create api --group apps --version v1alpha1 --kind SidecarSet --namespaced=false
  windlass create api --group cache --version v2 --kind Memcached   # another version, with conversion")]
pub(crate) struct CreateApi {
    /// The group, without the project's domain
    #[arg(long)]
    group: String,
    /// The version, such as v1 or v1alpha1
    #[arg(long)]
    version: String,
    /// The kind, in CamelCase
    #[arg(long)]
    kind: String,
    /// In a project of Helm charts, the chart of the kind: a folder or a .tgz [default: a small one]
    #[arg(long, value_name = "PATH")]
    helm_chart: Option<PathBuf>,
    /// Whether objects live in namespaces
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, default_value_t = true, default_missing_value = "true")]
    namespaced: bool,
    /// The plural, in lower case; found unless given
    #[arg(long)]
    plural: Option<String>,
    /// A short name for kubectl; may be given several times
    #[arg(long = "shortname", value_name = "NAME")]
    short_names: Vec<String>,
    #[command(flatten)]
    output: Output,
}

impl CreateApi {
    fn run(self) -> Result<()> {
        if helm::is_project(Path::new(".")) {
            return chart_api(self);
        }
        if self.helm_chart.is_some() {
            return Err(Error::Other(
                "--helm-chart is for projects of Helm charts; make one with `windlass init --plugins=helm`"
                    .to_owned(),
            ));
        }
        let new = NewApi {
            group: self.group,
            version: self.version,
            kind: self.kind,
            plural: self.plural,
            short_names: self.short_names,
            namespaced: self.namespaced,
        };
        let (resource, written) = scaffold::create_api(Path::new("."), &new)?;
        report(self.output, &resource.shown(), &resource, &written);
        Ok(())
    }
}

/// Adds a kind and its chart to a project of charts.
fn chart_api(api: CreateApi) -> Result<()> {
    if !api.namespaced {
        return Err(Error::Other(
            "objects of a chart's kind live in namespaces".to_owned(),
        ));
    }
    let new = NewHelmApi {
        group: api.group,
        version: api.version,
        kind: api.kind,
        chart: api.helm_chart,
    };
    let (resource, written) = helm::create_api(Path::new("."), &new)?;
    report_chart(api.output, resource, &written);
    Ok(())
}

/// Says what became of a kind of a chart.
fn report_chart(output: Output, mut resource: Value, written: &[Written]) {
    resource["files"] = facts(written);
    output.print(&resource, || {
        let text = |field: &str| resource[field].as_str().unwrap_or_default();
        format!(
            "{}Added {} of {}, made from {}.\nNext: `windlass manifests`, then `windlass run --embedded`.\n",
            describe(written),
            text("kind"),
            text("group"),
            text("chart")
        )
    });
}

/// Add a webhook, for a kind of the project or of Kubernetes
#[derive(Args)]
#[command(after_help = "Examples:
  windlass create webhook --group cache --version v1 --kind Memcached --defaulting --validation
  windlass create webhook --group core --version v1 --kind Pod --defaulting")]
pub(crate) struct CreateWebhook {
    /// The group, without the project's domain; `core` for Pods and their like
    #[arg(long)]
    group: String,
    /// The version
    #[arg(long)]
    version: String,
    /// The kind
    #[arg(long)]
    kind: String,
    /// Fill in defaults
    #[arg(long, visible_alias = "defaults")]
    defaulting: bool,
    /// Check objects before they are stored
    #[arg(long, visible_alias = "programmatic-validation")]
    validation: bool,
    /// Convert between the versions of the kind
    #[arg(long)]
    conversion: bool,
    #[command(flatten)]
    output: Output,
}

impl CreateWebhook {
    fn run(self) -> Result<()> {
        if !(self.defaulting || self.validation || self.conversion) {
            return Err(Error::Other(
                "say what the webhook is to do: --defaulting, --validation or --conversion"
                    .to_owned(),
            ));
        }
        let new = NewWebhook {
            group: self.group,
            version: self.version,
            kind: self.kind,
            defaulting: self.defaulting,
            validation: self.validation,
            conversion: self.conversion,
            operations: None,
        };
        webhook(&new, self.output)
    }
}

/// Adds a webhook and says so.
pub(super) fn webhook(new: &NewWebhook, output: Output) -> Result<()> {
    let (resource, written) = scaffold::create_webhook(Path::new("."), new)?;
    let what = format!("the webhook of {}", resource.shown());
    report(output, &what, &resource, &written);
    Ok(())
}

fn report(output: Output, what: &str, resource: &Resource, written: &[Written]) {
    let facts = json!({
        "group": resource.full_group(),
        "version": resource.version,
        "kind": resource.kind,
        "plural": resource.plural,
        "files": facts(written),
    });
    output.print(&facts, || {
        if written.is_empty() {
            return format!("The project has {what} already.\n");
        }
        let places = places(written, &resource.kind);
        let fill_in = match places.split_last() {
            Some((last, [])) => format!("fill in {last}, then "),
            Some((last, others)) => format!("fill in {} and {last}, then ", others.join(", ")),
            None => String::new(),
        };
        format!(
            "{}Added {what}.\nNext: {fill_in}`make test` and `windlass manifests`.\n",
            describe(written)
        )
    });
}

/// The new files that a person goes on with, and what is said there.
fn places(written: &[Written], kind: &str) -> Vec<String> {
    let new = written.iter().filter_map(|one| match one {
        Written::New(path) => path.strip_prefix("src/"),
        Written::Changed(_) => None,
    });
    let place = |path: &str| {
        let (_, file) = path.rsplit_once('/')?;
        let said = match file {
            "controller.rs" => "what is done for it".to_owned(),
            "conversion.rs" => "how one version becomes another".to_owned(),
            "webhook.rs" => "what is filled in and checked".to_owned(),
            _ => format!("what a {kind} is"),
        };
        Some(format!("src/{path} ({said})"))
    };
    let mut places: Vec<String> = new.filter_map(place).collect();
    // What it is comes before what is done for it.
    places.sort_by_key(|place| !place.contains("(what a "));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_which_files_to_go_on_with() {
        let new = |path: &str| Written::New(path.to_owned());
        let written = [
            Written::Changed("src/lib.rs".to_owned()),
            new("src/memcached.rs"),
            new("src/memcached/controller.rs"),
            new("src/memcached/v1.rs"),
            new("tests/memcached.rs"),
        ];
        assert_eq!(
            places(&written, "Memcached"),
            [
                "src/memcached/v1.rs (what a Memcached is)",
                "src/memcached/controller.rs (what is done for it)"
            ]
        );
    }
}
