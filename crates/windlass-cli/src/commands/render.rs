//! `windlass render`: what a chart makes, without a cluster.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use windlass_charts::{Capabilities, Options, render, to_yaml};
use windlass_declarative::helm::stages::{Operation, Stage, StageName, stages};

use super::chart::{Given, load};
use crate::error::{Error, Result};
use crate::output::Output;

/// Print the objects that a Helm chart makes, in the stages in which they are applied
#[derive(Args)]
#[command(after_help = "Examples:
  windlass render ./helm-charts/web
  windlass render web-1.0.0.tgz -f production.yaml --set replicas=3 -o json
  windlass render ./helm-charts/web --operation upgrade")]
pub(crate) struct Render {
    /// The chart: a folder or a .tgz
    chart: PathBuf,
    #[command(flatten)]
    given: Given,
    /// Name of the release
    #[arg(long, default_value = "release-name")]
    name: String,
    /// Namespace of the release
    #[arg(short = 'n', long, default_value = "default")]
    namespace: String,
    /// What is done with the release: decides which hooks run
    #[arg(long, value_enum, default_value = "install")]
    operation: Done,
    /// Version of the cluster that templates see
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// An API version that the cluster has besides its own; may be given several times
    #[arg(short = 'a', long = "api-versions", value_name = "VERSION")]
    api_versions: Vec<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Done {
    Install,
    Upgrade,
    Rollback,
    Uninstall,
}

impl Render {
    pub(crate) fn run(self) -> Result<()> {
        let failed = |error: windlass_charts::Error| Error::Other(error.to_string());
        let operation = match self.operation {
            Done::Install => Operation::Install,
            Done::Upgrade => Operation::Upgrade,
            Done::Rollback => Operation::Rollback,
            Done::Uninstall => Operation::Delete,
        };
        let chart = load(&self.chart)?;
        let mut capabilities = Capabilities::default();
        if let Some(version) = self.kube_version {
            capabilities.kube_version = version;
        }
        capabilities.api_versions.extend(self.api_versions);
        let options = Options {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            is_upgrade: operation == Operation::Upgrade,
            capabilities,
            ..Options::default()
        };
        let rendered = render(&chart, &self.given.values()?, &options).map_err(failed)?;
        let stages = stages(&rendered, operation).map_err(failed)?;
        let facts = json!({
            "name": self.name,
            "namespace": self.namespace,
            "chart": format!("{}-{}", chart.name(), chart.metadata.version),
            "stages": stages.iter().map(fact).collect::<Vec<_>>(),
            "notes": rendered.notes,
        });
        self.output.print(&facts, || text(&stages));
        Ok(())
    }
}

/// What a stage is called.
fn named(name: &StageName) -> String {
    match name {
        StageName::Definitions => "definitions of crds/".to_owned(),
        StageName::Hook { event, weight } => format!("{event} hook, weight {weight}"),
        StageName::Objects => "objects".to_owned(),
    }
}

fn fact(stage: &Stage) -> Value {
    let objects = stage.objects.iter();
    let objects = objects.map(|one| json!({"source": one.source, "object": one.object}));
    json!({"stage": named(&stage.name), "objects": objects.collect::<Vec<_>>()})
}

fn text(stages: &[Stage]) -> String {
    let mut text = String::new();
    for (number, stage) in (1..).zip(stages) {
        let _ = writeln!(text, "# Stage {number}: {}", named(&stage.name));
        for one in &stage.objects {
            let _ = write!(
                text,
                "---\n# Source: {}\n{}",
                one.source,
                to_yaml(&one.object)
            );
        }
    }
    text
}
