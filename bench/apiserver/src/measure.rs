//! Everything that is measured of one subject.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use serde_json::{Value, json};

use crate::certificates::{Certificates, USER};
use crate::connection::Connection;
use crate::error::{BenchError, During as _, Result};
use crate::load::{self, CONNECTIONS, Rate, Until};
use crate::requests::{self, NAMESPACE, OBJECTS, WATCHED};
use crate::subject::{Kind, Places, Running};
use crate::watchers;

/// How often ours is started; the real one takes seconds, and is started once.
const STARTS: usize = 5;
/// How often a list is read.
const LISTS: usize = 15;
/// How long memory may settle before it is looked at.
const SETTLE: Duration = Duration::from_secs(2);
/// How many objects there are in the end of the measurement of many.
pub(crate) const LARGE: usize = 100_000;
/// The namespace of creates that are only counted.
const MORE: &str = "more";

/// The figures of one subject. The ceiling has rates only.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) ready_after: Duration,
    pub(crate) resident_empty: usize,
    pub(crate) resident_full: usize,
    /// How long one object is as JSON.
    pub(crate) object_bytes: usize,
    pub(crate) creates: Rate,
    pub(crate) updates: Rate,
    pub(crate) gets: Rate,
    pub(crate) gets_by_token: Rate,
    pub(crate) list: Duration,
    pub(crate) fanout_p50: Duration,
    pub(crate) fanout_p99: Duration,
    /// Of creates from nothing to [`LARGE`] objects.
    pub(crate) large_creates: Rate,
    pub(crate) resident_large: usize,
}

/// How long each rate is measured, and of what.
pub(crate) struct Plan<'a> {
    pub(crate) places: &'a Places,
    pub(crate) certificates: &'a Certificates,
    pub(crate) seconds: Duration,
}

impl Plan<'_> {
    async fn median_start(&self, kind: Kind) -> Result<(Duration, Running)> {
        let times = if kind.is_kubernetes() { 1 } else { STARTS };
        let mut delays = Vec::new();
        let mut last = None;
        for _ in 0..times {
            drop(last.take());
            let running = Running::start(kind, self.places, &self.certificates.nobody).await?;
            delays.push(running.ready_after);
            last = Some(running);
        }
        delays.sort_unstable();
        match last {
            Some(running) => Ok((delays[delays.len() / 2], running)),
            None => Err(BenchError::NotServing(kind.name().into(), String::new())),
        }
    }

    /// What hyper and rustls can do with objects of this length.
    pub(crate) async fn ceiling(&self, bytes: usize) -> Result<Figures> {
        let (_, running) = self.median_start(Kind::Ceiling(bytes)).await?;
        let mut figures = Figures::default();
        self.rates(&running, None, &mut figures)?;
        Ok(figures)
    }

    /// Everything, of a server.
    pub(crate) async fn server(&self, kind: Kind) -> Result<Figures> {
        let (ready_after, running) = self.median_start(kind).await?;
        let token = self.prepare(&running).await?;
        tokio::time::sleep(SETTLE).await;
        let mut figures = Figures {
            ready_after,
            resident_empty: running.resident(),
            ..Figures::default()
        };
        fill(&running, &self.certificates.user, OBJECTS)?;
        tokio::time::sleep(SETTLE).await;
        figures.resident_full = running.resident();
        let mut client = Connection::open(running.address, &self.certificates.user)
            .await
            .during("connect")?;
        figures.object_bytes = client
            .send(&requests::get(&requests::name(1), None), |_| ())
            .await
            .during("get")?
            .bytes;
        figures.list = list(&mut client).await?;
        self.rates(&running, Some(&token), &mut figures)?;
        let fanout = watchers::run(running.address, &self.certificates.user).await?;
        (figures.fanout_p50, figures.fanout_p99) = (fanout.p50, fanout.p99);
        drop(running);
        self.many(kind, &mut figures).await?;
        Ok(figures)
    }

    /// How fast a server that starts empty takes many objects, and what it needs for them.
    async fn many(&self, kind: Kind, figures: &mut Figures) -> Result<()> {
        let running = Running::start(kind, self.places, &self.certificates.nobody).await?;
        self.prepare(&running).await?;
        tokio::time::sleep(SETTLE).await;
        figures.large_creates = fill(&running, &self.certificates.user, LARGE)?;
        tokio::time::sleep(SETTLE).await;
        figures.resident_large = running.resident();
        Ok(())
    }

    /// Reads and writes, as fast as they are answered.
    fn rates(&self, running: &Running, token: Option<&str>, figures: &mut Figures) -> Result<()> {
        let user = &self.certificates.user;
        let until = Until::After(self.seconds);
        // Each connection goes through all objects, beginning elsewhere and in steps of its own.
        let some = |turn: load::Turn| {
            requests::name((turn.connection * 311 + turn.number * 7919) % OBJECTS)
        };
        figures.gets = load::run(running, user, until, |turn| {
            requests::get(&some(turn), None)
        })?;
        if let Some(token) = token {
            let nobody = &self.certificates.nobody;
            figures.gets_by_token = load::run(running, nobody, until, |turn| {
                requests::get(&some(turn), Some(token))
            })?;
        }
        // Nobody writes what another writes.
        figures.updates = load::run(running, user, until, |turn| {
            let number = (turn.number % (OBJECTS / CONNECTIONS)) * CONNECTIONS + turn.connection;
            requests::update(&requests::name(number), turn.number + 1)
        })?;
        figures.creates = load::run(running, user, until, |turn| {
            requests::create(
                MORE,
                &format!("object-{:02}-{:07}", turn.connection, turn.number),
            )
        })?;
        Ok(())
    }

    /// Namespaces, the user's role, and a token; the token comes back.
    async fn prepare(&self, running: &Running) -> Result<String> {
        let mut admin = Connection::open(running.address, &self.certificates.admin)
            .await
            .during("connect")?;
        for namespace in [NAMESPACE, MORE, WATCHED] {
            let body =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            make(&mut admin, "/api/v1/namespaces", &body).await?;
        }
        let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
        let body =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": USER}});
        make(&mut admin, &accounts, &body).await?;
        let all = [
            "get", "list", "watch", "create", "update", "patch", "delete",
        ];
        // About what an operator asks for; nobody is there to fill in an aggregated role.
        let body = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "bench"},
            "rules": [
                {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": all},
                {"apiGroups": [""], "resources": ["pods", "services", "secrets"], "verbs": all},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": all},
                {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": all},
            ],
        });
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        make(&mut admin, roles, &body).await?;
        let body = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "bench"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER},
                {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": USER},
            ],
        });
        make(
            &mut admin,
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            &body,
        )
        .await?;
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
        let made = make(&mut admin, &format!("{accounts}/{USER}/token"), &body).await?;
        let token = made["status"]["token"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.until_allowed(running).await?;
        Ok(token)
    }

    /// Roles are known a little after they are written, in Kubernetes.
    async fn until_allowed(&self, running: &Running) -> Result<()> {
        let mut user = Connection::open(running.address, &self.certificates.user)
            .await
            .during("connect")?;
        for _ in 0..1_000 {
            let answer = user.send(&requests::list(), |_| ()).await.during("list")?;
            if answer.code == 200 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err(BenchError::Refused(
            "the role of the load's user".into(),
            403,
            String::new(),
        ))
    }
}

/// Creates so many objects, or a few more.
fn fill(running: &Running, user: &Arc<ClientConfig>, objects: usize) -> Result<Rate> {
    let until = Until::Each(objects.div_ceil(CONNECTIONS));
    load::run(running, user, until, |turn| {
        let number = turn.number * CONNECTIONS + turn.connection;
        requests::create(NAMESPACE, &requests::name(number))
    })
}

/// Creates something that the measurement needs.
async fn make(admin: &mut Connection, path: &str, body: &Value) -> Result<Value> {
    let mut text = Vec::new();
    let sent = requests::post(path, body);
    let answer = admin
        .send(&sent, |bytes| text.extend_from_slice(bytes))
        .await
        .during(path)?;
    if answer.code != 201 {
        let text = String::from_utf8_lossy(&text).into_owned();
        return Err(BenchError::Refused(path.into(), answer.code, text));
    }
    Ok(serde_json::from_slice(&text).unwrap_or_default())
}

/// How long a list of everything takes, in the middle.
async fn list(client: &mut Connection) -> Result<Duration> {
    let mut delays = Vec::new();
    for _ in 0..LISTS {
        let started = Instant::now();
        client
            .send(&requests::list(), |_| ())
            .await
            .during("list")?;
        delays.push(started.elapsed());
    }
    delays.sort_unstable();
    Ok(delays[delays.len() / 2])
}
