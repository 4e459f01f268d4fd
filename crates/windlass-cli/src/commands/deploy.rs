//! `windlass deploy` and `undeploy`: the whole operator, into the cluster and out of it.
//!
//! What deploy makes bears a label with the project's name. Undeploy removes what bears it, found
//! in the cluster and not in today's code, and so neither forgets what an older version made nor
//! takes what was there before.

mod instances;
mod objects;
mod rollout;

use std::fmt::Write as _;
use std::future::ready;
use std::path::Path;

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use windlass_manifests::upgrade::changes;

use self::instances::remove_instances;
use self::objects::{Made, Removal, apply, kind_of, made, others_in, remove, shown, usable};
use crate::cluster;
use crate::error::{Error, Result, doing};
use crate::interrupt::Signals;
use crate::output::Output;
use crate::program::Program;
use crate::progress::Step;
use crate::project::Project;

/// Install the operator with everything it needs into the cluster of the current kubeconfig
#[derive(Args)]
#[command(after_help = "Examples:
  windlass deploy
  windlass deploy --image registry.example.com/my-operator:1.0.0")]
pub(crate) struct Deploy {
    /// The image of the operator's program; `<operator>:latest` unless given
    #[arg(long)]
    image: Option<String>,
    /// Do not wait until it runs
    #[arg(long)]
    no_wait: bool,
    /// Deploy also what breaks objects or clients that are there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: Output,
}

impl Deploy {
    pub(crate) async fn run(self) -> Result<()> {
        let client = cluster::reached().await?;
        let mut signals = Signals::listen()?;
        let program = Program::build(Path::new("."), None, &mut signals).await?;
        let mut arguments = vec!["manifests".to_owned()];
        arguments.extend(self.image.iter().map(|image| format!("--image={image}")));
        let objects = read(&program.ask(arguments, &mut signals).await?)?;
        let name = &program.project.project_name;
        if !self.force {
            breaks_nothing(&client, &objects).await?;
        }
        let step = Step::start(format!("applying {} objects", objects.len()));
        let mut new = Vec::new();
        let applied = Box::pin(apply_all(&client, name, &objects, &mut signals, &mut new)).await;
        drop(step);
        if let Err(error) = applied {
            take_back(&client, name, &new).await;
            return Err(error);
        }
        if !self.no_wait {
            let running = signals.unless(rollout::all_run(&client, &objects)).await;
            running.ok_or_else(|| {
                Error::Interrupted(format!(
                    "{name} is deployed, but was not seen to run; remove it with `windlass undeploy`"
                ))
            })??;
        }
        let facts = json!({
            "operator": name,
            "objects": objects.iter().map(shown).collect::<Vec<_>>(),
            "new": new.iter().map(shown).collect::<Vec<_>>(),
            "runs": !self.no_wait,
        });
        self.output.print(&facts, || {
            let runs = if self.no_wait { "" } else { " and runs" };
            format!(
                "{name} is deployed{runs} ({} objects, {} of them new). Remove it with `windlass undeploy`.\n",
                objects.len(),
                new.len()
            )
        });
        Ok(())
    }
}

/// Applies everything, and notes what was not there before. A signal is heard between requests and
/// not within one: nobody could say then what has become of it.
async fn apply_all(
    client: &Client,
    name: &str,
    objects: &[DynamicObject],
    signals: &mut Signals,
    new: &mut Vec<DynamicObject>,
) -> Result<()> {
    let interrupted =
        || Error::Interrupted("what was new in the cluster is removed again".to_owned());
    for object in objects {
        signals.unless(ready(())).await.ok_or_else(interrupted)?;
        if Box::pin(apply(client, name, object)).await? == Made::New {
            new.push(object.clone());
        }
        let usable = signals.unless(Box::pin(usable(client, object))).await;
        usable.ok_or_else(interrupted)??;
    }
    signals.unless(ready(())).await.ok_or_else(interrupted)
}

/// Removes what a deploy that came to nothing has made.
async fn take_back(client: &Client, name: &str, new: &[DynamicObject]) {
    let _step = Step::start("taking back what was made");
    for object in new.iter().rev() {
        if let Err(error) = remove(client, name, object).await {
            eprintln!("warning: {error}");
        }
    }
}

/// Refuses definitions that would break objects or clients that are there.
async fn breaks_nothing(client: &Client, objects: &[DynamicObject]) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut breaking = Vec::new();
    for object in objects
        .iter()
        .filter(|object| kind_of(object) == "CustomResourceDefinition")
    {
        let name = object.name_any();
        let found = crds.get_opt(&name).await;
        let Some(found) = found.map_err(doing(format!("look at {}", shown(object))))? else {
            continue;
        };
        let wanted: CustomResourceDefinition = object
            .clone()
            .try_parse()
            .map_err(|error| Error::Other(format!("{}: {error}", shown(object))))?;
        let broken = changes(&found, &wanted).into_iter();
        breaking.extend(
            broken
                .filter(|change| change.breaking)
                .map(|change| format!("{name} {change}")),
        );
    }
    if breaking.is_empty() {
        return Ok(());
    }
    Err(Error::Other(format!(
        "deploying would break objects or clients that are there; nothing was changed (--force does it all the same):\n{}",
        breaking.join("\n")
    )))
}

/// Remove everything that deploy made, and nothing else
///
/// With the operator's kinds go their objects, and what the operator made for them: while it still
/// runs, so that it can clean up. A kind that was installed before deploy stays, and so do its
/// objects.
#[derive(Args)]
#[command(after_help = "Example:
  windlass undeploy")]
pub(crate) struct Undeploy {
    #[command(flatten)]
    output: Output,
}

impl Undeploy {
    pub(crate) async fn run(self) -> Result<()> {
        let (_, project) = Project::find(Path::new("."))?;
        let name = &project.project_name;
        let client = cluster::reached().await?;
        let mut signals = Signals::listen()?;
        let step = Step::start("removing what deploy made");
        let (mut removed, mut kept, mut instances) = (Vec::new(), Vec::new(), 0);
        let work = Box::pin(remove_all(
            &client,
            name,
            &mut removed,
            &mut kept,
            &mut instances,
        ));
        let Some(done) = signals.unless(work).await else {
            return Err(Error::Interrupted(format!(
                "{} objects of {name} are removed; `windlass undeploy` removes the rest",
                removed.len()
            )));
        };
        done?;
        drop(step);
        let left: Vec<_> = kept
            .iter()
            .map(|(object, why)| json!({"object": object, "why": why}))
            .collect();
        let facts =
            json!({"operator": name, "removed": removed, "instances": instances, "left": left});
        self.output.print(&facts, || {
            let mut text = if removed.is_empty() {
                format!("nothing that deploy made of {name} is in the cluster\n")
            } else {
                let with = match instances {
                    0 => String::new(),
                    number => format!(", and with its kinds {number} of their own objects"),
                };
                let objects = match removed.len() {
                    1 => "1 object".to_owned(),
                    number => format!("{number} objects"),
                };
                format!("removed {objects} of {name}{with}\n")
            };
            for (object, why) in &kept {
                let _ = writeln!(text, "left {object}: {why}, which deploy did not make");
            }
            text
        });
        Ok(())
    }
}

/// Removes what deploy made, and notes what became of it.
async fn remove_all(
    client: &Client,
    name: &str,
    removed: &mut Vec<String>,
    kept: &mut Vec<(String, String)>,
    instances: &mut usize,
) -> Result<()> {
    for object in made(client, name).await? {
        if kind_of(&object) == "CustomResourceDefinition" {
            *instances += remove_instances(client, &object).await?;
        }
        if kind_of(&object) == "Namespace" {
            let others = others_in(client, name, &object.name_any()).await?;
            if !others.is_empty() {
                kept.push((shown(&object), format!("it holds {}", others.join(", "))));
                continue;
            }
        }
        if remove(client, name, &object).await? == Removal::Done {
            removed.push(shown(&object));
        }
    }
    Ok(())
}

fn read(yaml: &str) -> Result<Vec<DynamicObject>> {
    serde_saphyr::from_multiple(yaml)
        .map_err(|error| Error::Other(format!("cannot read the operator's manifests: {error}")))
}
