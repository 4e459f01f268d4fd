//! The last table of `make bench-framework`: how long after a change has been delivered its
//! reconcile begins, and how long after a start the first one does.
//!
//! A bare watch beside the operator tells when a change was delivered; both have connections of
//! their own, so that a difference may also be less than nothing. Peers that are other processes
//! cannot be measured like this: kube-runtime is the one beside ours.

use std::{
    env, io,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
    runtime::{Controller as KubeController, controller::Action, watcher},
};
use serde_json::json;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::timeout,
};
use windlass::{Context, Controller, Declare, Operator, Reconciler, testing::Environment};

/// As an operator that is shipped has it.
#[global_allocator]
static ALLOCATOR: windlass::run::Allocator = windlass::run::Allocator;

const NAMESPACE: &str = "default";
/// The object that is changed.
const NAME: &str = "change-to-reconcile";
const PATIENCE: Duration = Duration::from_secs(30);

type Anything<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The version of the object that was seen, and when.
type Seen = (String, Instant);

/// What one operator took, in milliseconds.
struct Column {
    name: &'static str,
    start: f64,
    /// From a delivery to its reconcile, in order.
    delays: Vec<f64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match bench().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("change-to-reconcile: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn bench() -> Anything<()> {
    let given = env::var("BENCH_CHANGES").ok();
    let changes = given.and_then(|text| text.parse().ok()).unwrap_or(1000);
    let (ours, theirs): (Begin, Begin) = (windlass, kube_runtime);
    let columns = [
        play("Windlass", ours, changes).await?,
        play("kube-runtime", theirs, changes).await?,
    ];
    println!("{changes} changes of one ConfigMap, one after the other\n");
    let row = |name: &str, cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    row("", &|column| column.name.to_owned());
    row("---", &|_| "---".to_owned());
    row(
        "a change delivered to its reconcile, p50 / p99, ms",
        &|column| {
            let at = |hundredths: usize| {
                let place = column.delays.len() * hundredths / 100;
                column.delays.get(place).copied().unwrap_or(f64::NAN)
            };
            format!("{:.2} / {:.2}", at(50), at(99))
        },
    );
    row("start to the first reconcile, ms", &|column| {
        format!("{:.1}", column.start)
    });
    Ok(())
}

/// Starts an operator that tells of every reconcile of the object.
type Begin = fn(Client, UnboundedSender<Seen>) -> Box<dyn std::any::Any + Send>;

async fn play(name: &'static str, begin: Begin, changes: u32) -> Anything<Column> {
    let maps: Api<ConfigMap> = Api::namespaced(client().await?, NAMESPACE);
    let change = async |number: u32| {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": NAME},
            "data": {"number": number.to_string()},
        });
        let params = PatchParams::apply("bench").force();
        maps.patch(NAME, &params, &Patch::Apply(&map)).await
    };
    change(0).await?;
    let (deliver, mut delivered) = unbounded_channel();
    let watching = watch(client().await?, deliver).await?;
    let (tell, mut told) = unbounded_channel();
    let asked = Instant::now();
    let running = begin(client().await?, tell);
    let (_, first) = next(&mut told).await?;
    let start = (first - asked).as_secs_f64() * 1000.0;
    let mut delays = Vec::new();
    for number in 1..=changes {
        let version = change(number).await?.resource_version().unwrap_or_default();
        let delivery = seen(&mut delivered, &version).await?;
        let reconcile = seen(&mut told, &version).await?;
        let later = reconcile.saturating_duration_since(delivery).as_secs_f64();
        let sooner = delivery.saturating_duration_since(reconcile).as_secs_f64();
        delays.push((later - sooner) * 1000.0);
    }
    drop(running);
    watching.abort();
    delays.sort_by(f64::total_cmp);
    Ok(Column {
        name,
        start,
        delays,
    })
}

/// A client with a connection of its own.
async fn client() -> Anything<Client> {
    Ok(Client::try_from(Config::infer().await?)?)
}

async fn next(from: &mut UnboundedReceiver<Seen>) -> Anything<Seen> {
    let seen = timeout(PATIENCE, from.recv()).await?;
    Ok(seen.ok_or_else(|| io::Error::other("nobody watches any more"))?)
}

/// When that version was seen.
async fn seen(from: &mut UnboundedReceiver<Seen>, version: &str) -> Anything<Instant> {
    loop {
        let (other, at) = next(from).await?;
        if other == version {
            return Ok(at);
        }
    }
}

/// Tells of every delivery of the object.
async fn watch(client: Client, deliver: UnboundedSender<Seen>) -> Anything<JoinHandle<()>> {
    let maps: Api<ConfigMap> = Api::all(client);
    let listed = maps.list(&ListParams::default()).await?;
    let from = listed.metadata.resource_version.unwrap_or_default();
    let events = maps.watch(&WatchParams::default(), &from).await?.boxed();
    Ok(tokio::spawn(async move {
        pin_mut!(events);
        while let Ok(Some(event)) = events.try_next().await {
            if let WatchEvent::Modified(map) = event {
                tell(&map, &deliver);
            }
        }
    }))
}

fn tell(map: &ConfigMap, to: &UnboundedSender<Seen>) {
    if map.name_any() == NAME {
        // Nobody listens any more when all is measured.
        let _ = to.send((map.resource_version().unwrap_or_default(), Instant::now()));
    }
}

struct Teller(UnboundedSender<Seen>);

impl Reconciler for Teller {
    type Object = ConfigMap;

    async fn reconcile(
        &self,
        map: &ConfigMap,
        _: &Context<ConfigMap>,
    ) -> windlass::Result<windlass::Action> {
        tell(map, &self.0);
        Ok(windlass::Action::done())
    }
}

fn windlass(client: Client, to: UnboundedSender<Seen>) -> Box<dyn std::any::Any + Send> {
    let declare = move |_: &mut Declare<ConfigMap>| Teller(to.clone());
    let operator =
        Operator::new("teller").controller(Controller::of_existing().reconciler(declare));
    Box::new(operator.start(client, Environment::default()))
}

fn kube_runtime(client: Client, to: UnboundedSender<Seen>) -> Box<dyn std::any::Any + Send> {
    let run = KubeController::new(Api::<ConfigMap>::all(client), watcher::Config::default()).run(
        |map, to| async move {
            tell(&map, &to);
            Ok::<_, kube::Error>(Action::await_change())
        },
        |_, _, _| Action::await_change(),
        Arc::new(to),
    );
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(run.for_each(|_| async {}));
    Box::new(tasks)
}
