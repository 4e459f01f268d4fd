//! Many watchers of one kind, each on a connection of its own: how long after a write is sent each
//! of them has it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::sync::mpsc;

use crate::connection::Connection;
use crate::error::{BenchError, During as _, Result};
use crate::requests;

/// How many watchers there are.
pub(crate) const WATCHERS: usize = 1_000;
const WRITES: usize = 40;
/// Who has not heard of a write by then never will.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a written object says: when it was sent, in nanoseconds since the watchers began.
const SENT: &str = "sent";

/// How long deliveries took, and how long until everybody had one write, in the middle.
pub(crate) struct Fanout {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

/// Lets everybody watch, writes, and waits for everybody after every write.
pub(crate) async fn run(address: SocketAddr, tls: &Arc<ClientConfig>) -> Result<Fanout> {
    let began = Instant::now();
    let (told, mut heard) = mpsc::unbounded_channel();
    let watch = requests::watch();
    for _ in 0..WATCHERS {
        let mut connection = Connection::open(address, tls)
            .await
            .during("connect a watcher")?;
        let code = connection.follow(&watch).await.during("start a watch")?;
        if code != 200 {
            return Err(BenchError::Refused("a watch".into(), code, String::new()));
        }
        let told = told.clone();
        tokio::spawn(async move {
            let mut read = Vec::new();
            while connection.more(&mut read).await.is_ok() {
                let now = began.elapsed();
                while let Some((sent, end)) = next_event(&read) {
                    read.drain(..end);
                    if told.send(now.saturating_sub(sent)).is_err() {
                        return;
                    }
                }
            }
        });
    }
    let mut writer = Connection::open(address, tls)
        .await
        .during("connect the writer")?;
    let mut delays = Vec::with_capacity(WATCHERS * WRITES);
    for number in 0..WRITES {
        let sent = began.elapsed().as_nanos().to_string();
        let request = requests::create_watched(number, SENT, &sent);
        let answer = writer
            .send(&request, |_| ())
            .await
            .during("write for the watchers")?;
        if answer.code != 201 {
            return Err(BenchError::Refused(
                "a write for the watchers".into(),
                answer.code,
                String::new(),
            ));
        }
        for _ in 0..WATCHERS {
            let delay = tokio::time::timeout(PATIENCE, heard.recv())
                .await
                .ok()
                .flatten();
            delays.push(delay.ok_or_else(|| {
                BenchError::Refused("a watcher that heard nothing".into(), 0, String::new())
            })?);
        }
    }
    delays.sort_unstable();
    let at = |share: usize| delays[(delays.len() - 1) * share / 100];
    Ok(Fanout {
        p50: at(50),
        p99: at(99),
    })
}

/// When the first event in `read` was sent, and where it ends.
fn next_event(read: &[u8]) -> Option<(Duration, usize)> {
    let mark = format!("\"{SENT}\":\"");
    let at = read
        .windows(mark.len())
        .position(|window| window == mark.as_bytes())?
        + mark.len();
    let length = read[at..].iter().position(|byte| *byte == b'"')?;
    let nanos = std::str::from_utf8(&read[at..at + length])
        .ok()?
        .parse()
        .ok()?;
    // The rest of the event says nothing.
    let end = at + read[at..].iter().position(|byte| *byte == b'\n')?;
    Some((Duration::from_nanos(nanos), end))
}
