//! `windlass rbac`: the rights that a chart's operator needs, whatever the values.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use windlass_charts::{Need, Purpose};
use windlass_declarative::helm::rights::{Right, Rights, rights};

use super::chart::load;
use crate::error::{Error, Result};
use crate::output::Output;

/// Print the least role of an operator of a Helm chart, and which template line needs each right
///
/// Templates are followed down all branches, so the role is enough for all values. Objects whose
/// kind comes from a value are listed: no role can be enough for them.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass rbac ./helm-charts/web
  windlass rbac web-1.0.0.tgz --name web-operator | kubectl apply -f -
  windlass rbac ./helm-charts/web -o json")]
pub(crate) struct Rbac {
    /// The chart: a folder or a .tgz
    chart: PathBuf,
    /// Name of the role [default: the chart's name]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Rbac {
    pub(crate) fn run(self) -> Result<()> {
        let chart = load(&self.chart)?;
        let found = rights(&chart).map_err(|error| Error::Other(error.to_string()))?;
        let name = self.name.unwrap_or_else(|| chart.name().to_owned());
        let facts = json!({
            "name": name,
            "rules": found.rights.iter().map(fact).collect::<Vec<_>>(),
            "unknown": found.unknown.iter().map(need).collect::<Vec<_>>(),
        });
        self.output.print(&facts, || role(&name, &found));
        if !self.output.is_json() && !found.unknown.is_empty() {
            eprintln!(
                "warning: the kind of {} comes from values; add the rights for those you allow",
                match found.unknown.len() {
                    1 => "1 object".to_owned(),
                    count => format!("{count} objects"),
                }
            );
        }
        Ok(())
    }
}

fn need(need: &Need) -> Value {
    json!({
        "source": need.source,
        "line": need.line,
        "when": need.when,
        "apiVersion": need.api_version.to_string(),
        "kind": need.kind.to_string(),
        "lookup": need.purpose == Purpose::Lookup,
    })
}

fn fact(right: &Right) -> Value {
    json!({
        "apiGroups": [right.group],
        "resources": [right.resource],
        "verbs": right.verbs,
        "guessed": right.guessed,
        "needs": right.needs.iter().map(need).collect::<Vec<_>>(),
    })
}

/// Where a need stands and what for.
fn place(need: &Need) -> String {
    let mut text = format!("{}:{}", need.source, need.line);
    if need.purpose == Purpose::Lookup {
        text.push_str(" looks it up");
    }
    if !need.when.is_empty() {
        let _ = write!(text, " if {}", need.when.join(", "));
    }
    text
}

fn role(name: &str, found: &Rights) -> String {
    let mut text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:{}\n",
        if found.rights.is_empty() { " []" } else { "" }
    );
    for right in &found.rights {
        for need in &right.needs {
            let _ = writeln!(text, "# {}", place(need));
        }
        if right.guessed {
            let _ = writeln!(
                text,
                "# The chart does not define this kind: check that its resource is {:?}.",
                right.resource
            );
        }
        let _ = writeln!(
            text,
            "- apiGroups: [{:?}]\n  resources: [{:?}]\n  verbs: {:?}",
            right.group, right.resource, right.verbs
        );
    }
    if !found.unknown.is_empty() {
        text.push_str("# Not covered, because the kind comes from values:\n");
        for need in &found.unknown {
            let _ = writeln!(text, "# {}: kind {}", place(need), need.kind);
        }
    }
    text
}
