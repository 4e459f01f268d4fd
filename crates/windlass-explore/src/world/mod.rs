//! One run: an API server that begins like all others, its controllers and node, an operator, and the
//! steps of a scenario.

mod ground;
mod operator;
mod play;
mod settle;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;
use windlass_apiserver::Snapshot;
use windlass_apiserver::http::Serving;
use windlass_apiserver::pki::{Authority, KeyedCertificate};

use crate::edge::{Deleted, Edge};
use crate::invariant::Invariant;
use crate::judge::Wrong;
use crate::plan::Plan;
use crate::process::Ports;
use crate::race::Race;
use crate::scenario::{Pods, Scenario, Step};
use crate::state::{Mask, State};
use crate::subject::{Life, Subject};
use crate::trace::Record;

use ground::Ground;

pub(crate) use play::is_fleeting;

/// The class that the controllers of the cluster make.
const CLASS: &str = "local";
/// The namespace of objects that name none.
const NAMESPACE: &str = "default";

/// Why a scenario cannot be judged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unusable {
    /// Something is missing on this machine.
    #[error("cannot {what}: {why}")]
    Machine {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        why: String,
    },
    /// The API server refuses what the scenario asks for.
    #[error("cannot {what}: {why}")]
    Refused {
        /// What was being done.
        what: String,
        /// The answer.
        why: String,
    },
    /// The operator does not run as it should when nothing disturbs it.
    #[error("undisturbed, {0}")]
    Undisturbed(String),
    /// A plan cannot be played.
    #[error("{0}")]
    Plan(String),
}

fn machine(what: &'static str) -> impl Fn(&dyn std::fmt::Display) -> Unusable {
    move |why| Unusable::Machine {
        what,
        why: why.to_string(),
    }
}

/// How long things are given.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Whether time is virtual.
    pub is_virtual: bool,
    /// For how long nothing happens in a run that has settled, while nothing is known of the operator.
    pub quiet: Duration,
    /// How long a difference may stay before it counts.
    pub patience: Duration,
    /// How long a step may take to settle.
    pub limit: Duration,
    /// How often it is looked.
    pub tick: Duration,
    /// How long a pause is that stands in for a fault.
    pub pause: Duration,
}

impl Pace {
    /// For processes.
    pub fn real() -> Self {
        Self {
            is_virtual: false,
            quiet: Duration::from_secs(6),
            patience: Duration::from_secs(20),
            limit: Duration::from_mins(1),
            tick: Duration::from_millis(10),
            pause: Duration::from_millis(400),
        }
    }

    /// For functions under virtual time.
    pub fn virtual_time() -> Self {
        Self {
            is_virtual: true,
            quiet: Duration::from_secs(40),
            patience: Duration::from_mins(5),
            limit: Duration::from_hours(2),
            tick: Duration::from_secs(1),
            pause: Duration::from_secs(1),
        }
    }
}

/// What every run begins with.
pub struct Base {
    snapshot: Snapshot,
    authority: Authority,
    serving: KeyedCertificate,
    pods: Pods,
    pub(crate) pace: Pace,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) finally: Vec<Invariant>,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// The state after each step that was compared; none where it was not.
    pub(crate) states: Vec<Option<State>>,
    pub(crate) records: Vec<Record>,
    pub(crate) deleted: Deleted,
    pub(crate) races: Vec<Race>,
    pub(crate) wrong: Option<(usize, Wrong)>,
    /// Whether every fault of its plan had its turn.
    pub(crate) complete: bool,
    pub(crate) took: Duration,
    /// The longest time between two things that happened within a step.
    pub(crate) longest_gap: Duration,
    /// Whether the operator asks for lists of any version.
    pub(crate) reads_any_version: bool,
    /// Whether replicas of the operator elect a leader.
    pub(crate) elects: bool,
}

/// What a run is compared with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) states: Vec<Option<State>>,
    pub(crate) mask: Mask,
    /// Objects of precious kinds that the operator deletes undisturbed, and in which steps.
    pub(crate) deleted: BTreeMap<String, BTreeSet<usize>>,
    /// Writes that the operator makes whenever it starts.
    pub(crate) at_start: BTreeSet<String>,
}

impl Base {
    /// A cluster with the objects that a scenario begins with.
    pub async fn prepare(scenario: &Scenario, pace: Pace) -> Result<Self, Unusable> {
        let plurals: Vec<String> = scenario
            .setup
            .iter()
            .filter_map(|object| object["spec"]["names"]["plural"].as_str())
            .map(str::to_owned)
            .collect();
        let compile = |rules: &std::collections::BTreeMap<String, String>| {
            let compiled = rules
                .iter()
                .map(|(name, source)| Invariant::compile(name, source, &plurals));
            compiled
                .collect::<Result<Vec<_>, _>>()
                .map_err(Unusable::Plan)
        };
        let (invariants, finally) = (compile(&scenario.always)?, compile(&scenario.finally)?);
        let cannot = machine("make certificates");
        let authority = Authority::create().map_err(|error| cannot(&error))?;
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST)];
        let serving = authority
            .server("kube-apiserver", &loopback, &["localhost"])
            .map_err(|error| cannot(&error))?;
        let ground = Ground::begin(None, None, 0, pace, scenario.pods);
        ground.rest(pace).await;
        ground.apply(&growing_class()).await?;
        for object in &scenario.setup {
            ground.apply(object).await?;
        }
        ground.rest(pace).await;
        Ok(Self {
            snapshot: ground.server.snapshot(),
            authority,
            serving,
            pods: scenario.pods,
            pace,
            invariants,
            finally,
        })
    }
}

/// The default class of the cluster, whose volumes can grow: what operators do then is to be seen.
fn growing_class() -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": CLASS },
        "provisioner": "windlass.dev/local",
        "allowVolumeExpansion": true,
    })
}

/// A run under way.
struct World<'a> {
    base: &'a Base,
    ground: Ground,
    edge: Arc<Edge>,
    subject: &'a Subject,
    life: Option<Life>,
    /// A former leader that has stopped with a write under way.
    former: Option<Life>,
    serving: Option<Serving>,
    folder: TempDir,
    ports: Ports,
    quiet: Duration,
    ends: usize,
    /// When one that has ended is started again.
    again: Option<Instant>,
    /// Whether the operator is to run.
    is_up: bool,
    longest_gap: Duration,
}

/// How a run is played.
#[derive(Clone)]
pub(crate) struct Take<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) ignore: &'a [String],
    pub(crate) plan: &'a Plan,
    pub(crate) seed: u64,
    /// Whether all steps are played, of a scenario or a part of it.
    pub(crate) expected: Option<&'a Expected>,
    /// What it most likely comes to: once it has, it is not waited for anything else.
    pub(crate) goal: Option<&'a Expected>,
    pub(crate) quiet: Duration,
    pub(crate) patience: Duration,
    /// What was found already: one that is like it does not take the whole patience.
    pub(crate) known: &'a [Wrong],
}
