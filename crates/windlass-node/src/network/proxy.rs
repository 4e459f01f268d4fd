//! Services without privileges: this program listens on their addresses and passes on.
//!
//! Every address of 127.128.0.0/16 is the machine's own, so a Service's can be listened on like any
//! other. A port that cannot be had (below 1024 without privileges, or somebody else's) is an event
//! on the Service. A Service without ready endpoints is not listened for: whoever connects is
//! refused, as kube-proxy would have it. UDP is not passed on, and an event says so.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::picture::Picture;
use super::route::{Endpoint, Protocol, Route, routes};

/// How long an endpoint may take to take a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Something a person should know about a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// Namespace of the Service.
    pub namespace: String,
    /// Its name.
    pub service: String,
    /// Its uid.
    pub uid: Option<String>,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// What a port of a Service leads to; read anew for every connection.
#[derive(Debug, Default)]
struct Targets {
    endpoints: Vec<Endpoint>,
    affinity: Option<Duration>,
    next: usize,
    /// Which endpoint a client was sent to last, and when.
    clients: BTreeMap<IpAddr, (Endpoint, Instant)>,
}

struct Listening {
    targets: Arc<Mutex<Targets>>,
    task: AbortHandle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps listening for the Services as they are, as long as the future is polled.
pub async fn keep(
    mut pictures: watch::Receiver<Picture>,
    troubles: mpsc::UnboundedSender<Trouble>,
) {
    let mut listening: BTreeMap<SocketAddr, Listening> = BTreeMap::new();
    let mut told = BTreeSet::new();
    loop {
        let wanted = routes(&pictures.borrow_and_update());
        let mut present = BTreeSet::new();
        let mut trouble = BTreeSet::new();
        for route in wanted.iter().filter(|route| is_ours(route)) {
            if route.protocol == Protocol::Udp {
                trouble.insert(not_passed_on(route));
                continue;
            }
            if route.endpoints.is_empty() {
                continue;
            }
            let own = SocketAddr::from((route.address, route.port));
            let node = route
                .node_port
                .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            for address in std::iter::once(own).chain(node) {
                match listen(&mut listening, address, route).await {
                    Ok(()) => {
                        present.insert(address);
                    }
                    Err(error) => {
                        trouble.insert(not_bound(route, address, &error));
                    }
                }
            }
        }
        listening.retain(|address, _| present.contains(address));
        for news in trouble.difference(&told) {
            let _ = troubles.send(news.clone());
        }
        told = trouble;
        if pictures.changed().await.is_err() {
            return;
        }
    }
}

/// An address of another range was given when the cluster ran with another runtime.
fn is_ours(route: &Route) -> bool {
    route.address.is_loopback()
}

fn not_bound(route: &Route, address: SocketAddr, error: &io::Error) -> Trouble {
    let hint = if error.kind() == io::ErrorKind::PermissionDenied {
        "; ports below 1024 need root: use another port, or reach the pods directly"
    } else {
        ""
    };
    Trouble {
        namespace: route.namespace.clone(),
        service: route.service.clone(),
        uid: route.uid.clone(),
        reason: "PortNotBound",
        message: format!("cannot listen on {address} for this Service: {error}{hint}"),
    }
}

fn not_passed_on(route: &Route) -> Trouble {
    Trouble {
        namespace: route.namespace.clone(),
        service: route.service.clone(),
        uid: route.uid.clone(),
        reason: "ProtocolNotSupported",
        message: format!(
            "port {} is UDP, which the process runtime does not pass on; reach the pods directly, \
             or use the sandbox runtime",
            route.port
        ),
    }
}

async fn listen(
    listening: &mut BTreeMap<SocketAddr, Listening>,
    address: SocketAddr,
    route: &Route,
) -> io::Result<()> {
    let known = match listening.entry(address) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(free) => {
            let listener = TcpListener::bind(address).await?;
            let targets: Arc<Mutex<Targets>> = Arc::default();
            let task = tokio::spawn(accept(listener, targets.clone())).abort_handle();
            free.insert(Listening { targets, task })
        }
    };
    let mut targets = known.targets.lock().unwrap_or_else(PoisonError::into_inner);
    targets.endpoints.clone_from(&route.endpoints);
    targets.affinity = route
        .affinity
        .map(|seconds| Duration::from_secs(seconds.into()));
    Ok(())
}

async fn accept(listener: TcpListener, targets: Arc<Mutex<Targets>>) {
    // Connections end with the Service.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, client)) => {
                    connections.spawn(pass_on(stream, client.ip(), targets.clone()));
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection to a service");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
}

async fn pass_on(mut client: TcpStream, from: IpAddr, targets: Arc<Mutex<Targets>>) {
    let attempts = {
        let targets = targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.endpoints.len()
    };
    // One that has just died is still listed for a moment: the next one is tried.
    for _ in 0..attempts {
        let chosen = {
            let mut targets = targets.lock().unwrap_or_else(PoisonError::into_inner);
            targets.choose(from, Instant::now())
        };
        let Some((address, port)) = chosen else {
            return;
        };
        let connecting = TcpStream::connect((address, port));
        if let Ok(Ok(mut endpoint)) = tokio::time::timeout(CONNECT_LIMIT, connecting).await {
            let _ = client.set_nodelay(true);
            let _ = endpoint.set_nodelay(true);
            let _ = tokio::io::copy_bidirectional(&mut client, &mut endpoint).await;
            return;
        }
        let mut targets = targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.clients.remove(&from);
    }
}

impl Targets {
    /// The endpoint for a client: the one it sticks to, or the next in turn.
    fn choose(&mut self, client: IpAddr, now: Instant) -> Option<Endpoint> {
        if let Some(limit) = self.affinity {
            self.clients
                .retain(|_, (endpoint, at)| now - *at < limit && self.endpoints.contains(endpoint));
            if let Some((endpoint, at)) = self.clients.get_mut(&client) {
                *at = now;
                return Some(*endpoint);
            }
        }
        if self.endpoints.is_empty() {
            return None;
        }
        self.next = (self.next + 1) % self.endpoints.len();
        let endpoint = self.endpoints[self.next];
        if self.affinity.is_some() {
            self.clients.insert(client, (endpoint, now));
        }
        Some(endpoint)
    }
}

#[cfg(test)]
mod tests;
