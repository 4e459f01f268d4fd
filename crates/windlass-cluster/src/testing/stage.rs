//! [`Stage`]: where a scenario of an operator is played.
//!
//! A scenario is plain requests, and waits for what comes of them, in a namespace of its own. So the
//! same one is played in process under virtual time, as every `cargo test` does, killed after each
//! write and otherwise disturbed; and on a real control plane, when [`REAL`] names its kubeconfig
//! and somebody runs the operator beside it.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use windlass::{Kind, Operator, kind::KindScope};

use super::cluster::TestCluster;

/// The environment variable that names the kubeconfig of a real control plane.
const REAL: &str = "WINDLASS_REAL";
/// How long anything may take, in virtual time or real: disturbed, it takes longer.
const PATIENCE: Duration = Duration::from_mins(2);
/// What may still be on its way in process is there after this time.
const REST: Duration = Duration::from_mins(1);

/// A namespace in which a scenario is played, in process or on a real control plane.
#[derive(Clone)]
pub struct Stage {
    client: Client,
    namespace: String,
    cluster: Option<TestCluster>,
}

impl Stage {
    /// The namespace `default` of a cluster in process.
    pub fn in_process(cluster: TestCluster) -> Self {
        Self {
            client: cluster.client(),
            namespace: "default".to_owned(),
            cluster: Some(cluster),
        }
    }

    /// A new namespace of a real control plane.
    async fn real(kubeconfig: &str) -> Self {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some("scenario-".to_owned());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let made = namespaces.create(&PostParams::default(), &namespace).await;
        Self {
            client,
            namespace: made.expect("a new namespace").name_any(),
            cluster: None,
        }
    }

    /// The cluster, in process: to disturb it, and to look at what only it knows.
    pub fn cluster(&self) -> Option<&TestCluster> {
        self.cluster.as_ref()
    }

    /// A client with the administrator's rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of a kind in the namespace.
    pub fn api<K: Kind>(&self) -> Api<K> {
        <K::Scope as KindScope>::api(self.client(), Some(&self.namespace))
    }

    /// Creates an object.
    pub async fn create<K: Kind>(&self, object: &K) -> K {
        let (api, params) = (self.api(), PostParams::default());
        let made = answered(async || api.create(&params, object).await).await;
        made.unwrap_or_else(|error| panic!("cannot create {}: {error}", object.name_any()))
    }

    /// Applies an object that is given as YAML, as `kubectl apply` does: strictly.
    pub async fn apply<K: Kind>(&self, object: &Value) -> K {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let mut params = PatchParams::apply("scenario");
        params.field_validation = Some(kube::api::ValidationDirective::Strict);
        let (api, patch) = (self.api(), Patch::Apply(object));
        let made = answered(async || api.patch(name, &params, &patch).await).await;
        made.unwrap_or_else(|error| panic!("cannot apply {name}: {error}"))
    }

    /// What the API server says to an object that it refuses.
    pub async fn refused<K: Kind>(&self, object: &K) -> Status {
        let (api, params) = (self.api(), PostParams::default());
        match answered(async || api.create(&params, object).await).await {
            Err(kube::Error::Api(status)) => *status,
            Err(other) => panic!("no answer of the API server: {other}"),
            Ok(object) => panic!("it was allowed: {object:#?}"),
        }
    }

    /// Changes an object by a JSON merge patch.
    pub async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        let (api, params, patch) = (self.api(), PatchParams::default(), Patch::Merge(patch));
        let made = answered(async || api.patch(name, &params, &patch).await).await;
        made.unwrap_or_else(|error| panic!("cannot patch {name}: {error}"))
    }

    /// Deletes an object.
    pub async fn delete<K: Kind>(&self, name: &str) {
        let gone = self.api::<K>().delete(name, &DeleteParams::default()).await;
        gone.unwrap_or_else(|error| panic!("cannot delete {name}: {error}"));
    }

    /// The object of that name, if there is one.
    pub async fn find<K: Kind>(&self, name: &str) -> Option<K> {
        let found = self.api().get_opt(name).await;
        found.unwrap_or_else(|error| panic!("cannot get {name}: {error}"))
    }

    /// Every object of a kind.
    pub async fn list<K: Kind>(&self) -> Vec<K> {
        let list = self.api().list(&ListParams::default()).await;
        list.unwrap_or_else(|error| panic!("cannot list {}: {error}", K::plural(&())))
            .items
    }

    /// Waits until the object is there and as expected.
    pub async fn until<K>(&self, name: &str, what: &str, is: impl Fn(&K) -> bool) -> K
    where
        K: Kind + Send + 'static,
    {
        let there = |object: Option<&K>| object.is_some_and(&is);
        let found = until(&self.api(), name, what, there).await;
        found.expect("an object that is there")
    }

    /// Waits until the object is gone.
    pub async fn until_gone<K: Kind + Send + 'static>(&self, name: &str) {
        let gone = |object: Option<&K>| object.is_none();
        until(&self.api(), name, "gone", gone).await;
    }

    /// Waits until an object of whatever scope, or its absence, is as expected.
    pub async fn until_in<K>(
        &self,
        api: &Api<K>,
        name: &str,
        what: &str,
        is: impl Fn(Option<&K>) -> bool,
    ) -> Option<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        until(api, name, what, is).await
    }

    /// Gives everything that is on its way the time to arrive. On a real control plane nobody knows
    /// when that is: wait for what shall come instead.
    pub async fn rest(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.advance(REST).await;
        }
    }
}

/// Sends a request again while a webhook that it needs is down, as an operator's is that was killed a
/// moment ago.
pub async fn answered<T>(send: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
    let limit = Instant::now() + PATIENCE;
    loop {
        let answer = send().await;
        let down = matches!(&answer, Err(kube::Error::Api(status)) if status.message.contains("failed calling webhook"));
        if !down || Instant::now() > limit {
            return answer;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Waits until one object, or its absence, is as expected.
async fn until<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    is: impl Fn(Option<&K>) -> bool,
) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let wait = await_condition(api.clone(), name, |object: Option<&K>| is(object));
    if let Ok(found) = tokio::time::timeout(PATIENCE, wait).await {
        return found.unwrap_or_else(|error| panic!("cannot watch {name}: {error}"));
    }
    let found = api.get_opt(name).await;
    panic!("{name} is not {what} in time: {found:#?}")
}

/// Plays a scenario once: in process, or on a real control plane if it needs nothing but that.
pub fn play<F, Fut>(operator: fn() -> Operator, needs_pods: bool, scenario: F)
where
    F: Fn(Stage) -> Fut,
    Fut: Future<Output = ()>,
{
    let Ok(kubeconfig) = std::env::var(REAL) else {
        return super::run(|cluster: TestCluster| async move {
            cluster.start(operator()).await;
            scenario(Stage::in_process(cluster)).await;
        });
    };
    if needs_pods {
        println!("not played: it needs pods that run, and {kubeconfig} has no node");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async { scenario(Stage::real(&kubeconfig).await).await });
}

/// Plays a scenario in process again and again, disturbed in every way there is.
pub fn disturb<F, Fut>(operator: fn() -> Operator, scenario: F)
where
    F: Fn(Stage) -> Fut,
    Fut: Future<Output = ()>,
{
    if std::env::var_os(REAL).is_some() {
        println!("not played: only a cluster in process can be disturbed");
        return;
    }
    super::run(|cluster: TestCluster| async move {
        cluster.start(operator()).await;
        let play = |cluster| scenario(Stage::in_process(cluster));
        cluster.ends_alike_however_disturbed(play).await;
    });
}

/// Panics when `config/` and `dist/` below an operator's folder are not what it would write there.
pub fn manifests_are_current(operator: &Operator, folder: &str) {
    let description = operator.description();
    let installation = windlass::manifests::Installation::of(&description);
    let files = windlass::manifests::tree(&description, &installation);
    for file in files.unwrap_or_else(|error| panic!("cannot write the manifests: {error}")) {
        let path = format!("{folder}/{}", file.path);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == file.text,
            "{path} is stale: run `{} manifests --out {folder}`",
            operator.name()
        );
    }
}
