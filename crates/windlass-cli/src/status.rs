//! `windlass status`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::Value;

use crate::error::{Error, Result, doing};
use crate::state::State;
use crate::table::ServerTable;

/// Show what runs in the cluster.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  windlass status\n  windlass status --watch\n  windlass status -o json | jq .pods"
)]
pub(crate) struct Status {
    /// The cluster's data folder
    #[arg(long, default_value = ".windlass")]
    data_dir: PathBuf,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Go on showing it, whenever it changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

/// How often a change is looked for.
const PERIOD: Duration = Duration::from_millis(500);
/// Clears a terminal and goes to its upper left.
const CLEAR: &str = "\x1b[2J\x1b[H";

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// Tables, for people
    Table,
    /// One JSON object, for programs
    Json,
}

/// Built-in kinds that are shown: title, path, and the wide columns worth having.
const WORKLOADS: &[(&str, &str, &str, &[&str])] = &[
    (
        "deployments",
        "Deployments",
        "/apis/apps/v1/deployments",
        &[],
    ),
    (
        "statefulSets",
        "StatefulSets",
        "/apis/apps/v1/statefulsets",
        &[],
    ),
    ("daemonSets", "DaemonSets", "/apis/apps/v1/daemonsets", &[]),
    ("jobs", "Jobs", "/apis/batch/v1/jobs", &[]),
    ("cronJobs", "CronJobs", "/apis/batch/v1/cronjobs", &[]),
    ("services", "Services", "/api/v1/services", &[]),
    ("pods", "Pods", "/api/v1/pods", &["IP"]),
];

impl Status {
    pub(crate) async fn run(self) -> Result<()> {
        let state = State::running(&self.data_dir)?;
        let client = client(&state).await?;
        let mut shown = String::new();
        loop {
            let now = match self.output {
                Output::Table => tables(&client).await,
                Output::Json => facts(&state, &client).await.map(|facts| self.json(&facts)),
            };
            let now = match now {
                // Stopped while it was watched: that is no failure.
                Err(_) if self.watch && !state.is_running() => {
                    println!("the cluster has stopped");
                    return Ok(());
                }
                now => now?,
            };
            if now != shown {
                let clear = self.watch && std::io::stdout().is_terminal();
                print!("{}{now}", if clear { CLEAR } else { "" });
                std::io::stdout()
                    .flush()
                    .map_err(|error| Error::Other(error.to_string()))?;
                shown = now;
            }
            if !self.watch {
                return Ok(());
            }
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => return Ok(()),
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Readable when it is said once, one line each time when it is said often.
    fn json(&self, facts: &Value) -> String {
        if self.watch {
            format!("{facts}\n")
        } else {
            format!("{facts:#}\n")
        }
    }
}

async fn facts(state: &State, client: &Client) -> Result<Value> {
    let mut facts = state.facts();
    let mut custom = Vec::new();
    for (_, path) in custom_resources(client).await? {
        custom.extend(items(client, &path).await?);
    }
    facts["customResources"] = custom.into();
    for (key, _, path, _) in WORKLOADS {
        facts[*key] = items(client, path).await?.into();
    }
    Ok(facts)
}

/// Whether a cluster answers.
pub(crate) async fn answers(state: &State) -> bool {
    match client(state).await {
        Ok(client) => client.apiserver_version().await.is_ok(),
        Err(_) => false,
    }
}

/// A client with the administrator's kubeconfig of a cluster.
pub(crate) async fn client(state: &State) -> Result<Client> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::Other(format!(
            "cannot use {}: {error}",
            state.kubeconfig.display()
        ))
    };
    let kubeconfig = Kubeconfig::read_from(&state.kubeconfig).map_err(|error| wrong(&error))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| wrong(&error))?;
    Client::try_from(config).map_err(|error| wrong(&error))
}

/// Everything worth showing, as tables under their titles.
pub(crate) async fn tables(client: &Client) -> Result<String> {
    let mut out = String::new();
    let mut add = |title: &str, table: &ServerTable, wide: &[&str]| {
        if !table.is_empty() {
            let _ = write!(out, "{title}\n{}\n\n", table.print(wide));
        }
    };
    for (kind, path) in custom_resources(client).await? {
        add(&kind, &ServerTable::get(client, &path).await?, &[]);
    }
    for (_, title, path, wide) in WORKLOADS {
        add(title, &ServerTable::get(client, path).await?, wide);
    }
    if out.is_empty() {
        out.push_str("nothing runs yet; create something with `kubectl apply -f …`\n");
    }
    Ok(out)
}

/// Kinds that are defined in the cluster, with the path to list them at.
async fn custom_resources(client: &Client) -> Result<Vec<(String, String)>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definitions = definitions
        .list(&ListParams::default())
        .await
        .map_err(doing("list the custom kinds"))?;
    let resources = definitions.items.into_iter().filter_map(|definition| {
        let spec = definition.spec;
        let version = spec.versions.iter().find(|version| version.served)?;
        let path = format!(
            "/apis/{}/{}/{}",
            spec.group, version.name, spec.names.plural
        );
        Some((spec.names.kind, path))
    });
    Ok(resources.collect())
}

async fn items(client: &Client, path: &str) -> Result<Vec<Value>> {
    let request = http::Request::get(path)
        .body(Vec::new())
        .map_err(|error| Error::Other(error.to_string()))?;
    let list: Value = client
        .request(request)
        .await
        .map_err(doing(format!("list {path}")))?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}
