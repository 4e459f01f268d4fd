//! Requests as fast as they are answered: a number of connections, each with one request under way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use crate::connection::Connection;
use crate::error::{BenchError, During as _, Result};
use crate::subject::{Running, as_f64};

/// How many connections send at once, as `wrk -t2 -c32`.
pub(crate) const CONNECTIONS: usize = 32;
/// On how many threads.
const THREADS: usize = 2;

/// Which request a connection sends next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) connection: usize,
    /// How many it has sent before.
    pub(crate) number: usize,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    After(Duration),
    /// So many requests on each connection.
    Each(usize),
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// Of the subject's cores, per request.
    pub(crate) cpu: Duration,
}

/// Sends `request` for every turn; an answer that is no success ends everything.
pub(crate) fn run(
    subject: &Running,
    tls: &Arc<ClientConfig>,
    until: Until,
    request: impl Fn(Turn) -> Vec<u8> + Send + Sync,
) -> Result<Rate> {
    let (cpu_before, began) = (subject.cpu(), Instant::now());
    let address = subject.address;
    let request = &request;
    let threads = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let connections = (0..CONNECTIONS).filter(move |n| n % THREADS == thread);
                    of_thread(address, tls, until, connections, request)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Ok(Vec::new())))
            .collect::<Vec<_>>()
    });
    let elapsed = began.elapsed();
    let cpu = subject.cpu().saturating_sub(cpu_before);
    let mut delays = Vec::new();
    for thread in threads {
        delays.extend(thread?);
    }
    delays.sort_unstable();
    let at = |share: usize| {
        delays
            .get(delays.len() * share / 100)
            .copied()
            .unwrap_or_default()
    };
    let count = u32::try_from(delays.len()).unwrap_or(u32::MAX).max(1);
    Ok(Rate {
        per_second: as_f64(count.into()) / elapsed.as_secs_f64(),
        p50: at(50),
        p99: at(99),
        cpu: cpu / count,
    })
}

fn of_thread(
    address: SocketAddr,
    tls: &Arc<ClientConfig>,
    until: Until,
    connections: impl Iterator<Item = usize>,
    request: &impl Fn(Turn) -> Vec<u8>,
) -> Result<Vec<Duration>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .during("start a runtime")?;
    runtime.block_on(async {
        let all =
            connections.map(|connection| of_connection(address, tls, until, connection, request));
        let all = futures::future::join_all(all).await;
        let mut delays = Vec::new();
        for one in all {
            delays.extend(one?);
        }
        Ok(delays)
    })
}

async fn of_connection(
    address: SocketAddr,
    tls: &Arc<ClientConfig>,
    until: Until,
    connection: usize,
    request: &impl Fn(Turn) -> Vec<u8>,
) -> Result<Vec<Duration>> {
    let mut stream = Connection::open(address, tls).await.during("connect")?;
    let began = Instant::now();
    let mut delays = Vec::new();
    loop {
        let number = delays.len();
        let done = match until {
            Until::After(time) => began.elapsed() >= time,
            Until::Each(requests) => number >= requests,
        };
        if done {
            return Ok(delays);
        }
        let sent = request(Turn { connection, number });
        let started = Instant::now();
        let mut body = Vec::new();
        let answer = stream
            .send(&sent, |bytes| {
                if body.is_empty() {
                    body.extend_from_slice(&bytes[..bytes.len().min(400)]);
                }
            })
            .await
            .during("send a request")?;
        if !(200..300).contains(&answer.code) {
            let sent = String::from_utf8_lossy(&sent)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            let said = String::from_utf8_lossy(&body).into_owned();
            return Err(BenchError::Refused(sent, answer.code, said));
        }
        delays.push(started.elapsed());
    }
}
