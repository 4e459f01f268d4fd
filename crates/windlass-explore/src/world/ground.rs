//! What a run stands on: an API server, the controllers of the cluster and a simulated node.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use windlass::run::Running;
use windlass::testing::{Activity, Environment};
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random, Snapshot};
use windlass_node::simulated::{self, Delays, SimulatedNodeConfig};
use windlass_workloads::{LocalVolumes, WorkloadsConfig};

use super::{NAMESPACE, Pace, Unusable};
use crate::edge::Edge;
use crate::fields::NO_IMAGE;
use crate::scenario::{Named, Pods};

/// Where virtual time starts.
const START: &str = "2030-01-01T00:00:00Z";
/// What is due later than that is not waited for.
const SOON: Duration = Duration::from_hours(24);
/// How long the objects of a scenario may take to be accepted.
const ACCEPTED: Duration = Duration::from_secs(30);

/// An API server with controllers and a node.
pub(super) struct Ground {
    pub(super) server: ApiServer,
    client: Client,
    pub(super) activity: Activity,
    _running: [Running; 2],
}

impl Ground {
    pub(super) fn begin(
        snapshot: Option<&Snapshot>,
        hooks: Option<Arc<Edge>>,
        seed: u64,
        pace: Pace,
        pods: Pods,
    ) -> Self {
        let start: Timestamp = START.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let mut config = Config {
            random: Random::seeded(seed),
            ..Config::default()
        };
        if let Some(edge) = hooks {
            config.hooks = Some(edge);
        }
        let mut environment = Environment::default();
        if pace.is_virtual {
            config.clock = Clock::starting_at(start);
            environment.clock = windlass::testing::Clock::starting_at(start);
            environment.random = windlass::testing::Random::seeded(seed);
        }
        let server = match snapshot {
            Some(snapshot) => ApiServer::starting_from(config, snapshot),
            None => ApiServer::new(config),
        };
        let client = |user: &str, group: &str| {
            let identity = Identity::new(user, ["system:masters".to_owned(), group.to_owned()]);
            Client::new(server.in_process(identity), NAMESPACE)
        };
        let workloads = windlass_workloads::operator(WorkloadsConfig {
            root_ca: None,
            // Nothing is ever written there: the node is a simulated one.
            local_volumes: Some(LocalVolumes {
                folder: "/volumes".into(),
                remove: |_| Ok(()),
            }),
        });
        let soon = if pace.is_virtual {
            Duration::from_secs(1)
        } else {
            Duration::from_millis(5)
        };
        let delays = Delays {
            start: soon,
            ready: match pods {
                Pods::Ready | Pods::Fail => soon,
                Pods::Never => Duration::from_hours(24 * 365),
            },
            stop: soon,
        };
        let mut settings = SimulatedNodeConfig::new("simulated");
        settings.delays = delays;
        let (node, handle) = simulated::operator(settings);
        handle.remove_image(NO_IMAGE, "there is no such image");
        if pods == Pods::Fail {
            handle.remove_every_image("the explorer lets no container start");
        }
        let running = [
            workloads.start(
                client("system:kube-controller-manager", "system:controllers"),
                environment.clone(),
            ),
            node.start(
                client("system:node:simulated", "system:nodes"),
                environment.clone(),
            ),
        ];
        Self {
            client: client("kubernetes-admin", "system:admins"),
            activity: environment.activity,
            server,
            _running: running,
        }
    }

    /// Whether the controllers have nothing left to do, but for what is far away: a pod that never gets
    /// ready is one that would in a year.
    pub(super) fn is_idle(&self) -> bool {
        let soon = Instant::now() + SOON;
        let is_far = self.activity.next_due().is_none_or(|due| due > soon);
        is_far && !self.activity.is_busy()
    }

    /// Waits until the controllers have nothing left to do.
    pub(super) async fn rest(&self, pace: Pace) {
        let limit = Instant::now() + ACCEPTED;
        let mut calm = 0;
        let mut revision = self.server.revision();
        while calm < 10 && Instant::now() < limit {
            sleep(pace.tick).await;
            let now = self.server.revision();
            let is_calm = self.is_idle() && now == revision;
            calm = if is_calm { calm + 1 } else { 0 };
            revision = now;
        }
    }

    /// The objects of a kind in a namespace, as the user sees them.
    pub(super) async fn api(&self, named: &Named) -> Result<Api<DynamicObject>, String> {
        let (group, version) = named
            .api_version
            .split_once('/')
            .unwrap_or(("", &named.api_version));
        let gvk = GroupVersionKind::gvk(group, version, &named.kind);
        let (resource, capabilities) = self.resource(&gvk).await?;
        Ok(match (&capabilities, &named.namespace) {
            (Scope::Cluster, _) => Api::all_with(self.client.clone(), &resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
            (Scope::Namespaced, None) => {
                Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
            }
        })
    }

    async fn resource(&self, gvk: &GroupVersionKind) -> Result<(ApiResource, Scope), String> {
        let found = kube::discovery::pinned_kind(&self.client, gvk).await;
        let (resource, capabilities) = found.map_err(|error| error.to_string())?;
        Ok((resource, capabilities.scope))
    }

    /// Applies an object; again while its kind is not served yet.
    pub(super) async fn apply(&self, object: &Value) -> Result<(), Unusable> {
        let Some(named) = crate::scenario::named(object) else {
            return Err(Unusable::Plan(format!(
                "this object has no apiVersion, kind or name: {object}"
            )));
        };
        let limit = Instant::now() + ACCEPTED;
        loop {
            let applied = async {
                let api = self.api(&named).await.map_err(|why| (why, false))?;
                let params = PatchParams::apply("windlass-explore").force();
                let mut object = object.clone();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("creationTimestamp");
                }
                if let Some(whole) = object.as_object_mut() {
                    whole.remove("status");
                }
                let patched = api
                    .patch(&named.name, &params, &Patch::Apply(&object))
                    .await;
                patched.map(drop).map_err(|error| {
                    let is_final = matches!(&error, kube::Error::Api(status)
                        if matches!(status.code, 400 | 403 | 422));
                    (error.to_string(), is_final)
                })
            };
            match applied.await {
                Ok(()) => return Ok(()),
                Err((_, false)) if Instant::now() < limit => sleep(Duration::from_millis(50)).await,
                Err((why, _)) => {
                    return Err(Unusable::Refused {
                        what: format!("apply {named}"),
                        why,
                    });
                }
            }
        }
    }
}
