//! A client that writes all the while, and remembers what was acknowledged.
//!
//! It asks the client Service over a new connection each time, as clients do that come and go. What
//! is not acknowledged may have been written or not; what is must be there at the end, in order.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the client rests between two writes.
const PAUSE: Duration = Duration::from_millis(20);

/// A client of one cluster.
pub(crate) struct Writer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// The number and revision of each acknowledged write.
    acknowledged: Arc<Mutex<Vec<(u64, i64)>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Begins to write to the Service at this address.
    pub(crate) fn start(address: &str) -> Self {
        let address = format!("{address}:2379").parse().expect("an address");
        let (stop, acknowledged) = (Arc::default(), Arc::default());
        let mut writer = Self {
            address,
            stop,
            acknowledged,
            thread: None,
        };
        let (stop, log) = (Arc::clone(&writer.stop), Arc::clone(&writer.acknowledged));
        writer.thread = Some(std::thread::spawn(move || {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                if let Some(revision) = put(address, number) {
                    log.lock().expect("a log").push((number, revision));
                }
                std::thread::sleep(PAUSE);
            }
        }));
        writer
    }

    /// How many writes were acknowledged so far.
    pub(crate) fn count(&self) -> usize {
        self.acknowledged.lock().expect("a log").len()
    }

    /// Ends, and reads everything back: each acknowledged write is there, in the order in which
    /// they were acknowledged. Answers how many there were.
    pub(crate) fn finish(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the writer ends");
        }
        let found = all(self.address);
        let acknowledged = self.acknowledged.lock().expect("a log");
        assert!(!acknowledged.is_empty(), "nothing was ever acknowledged");
        let mut last = 0;
        for (number, revision) in acknowledged.iter() {
            let there = found.get(number);
            assert_eq!(there, Some(revision), "write {number} was acknowledged");
            assert!(*revision > last, "write {number} is out of order");
            last = *revision;
        }
        println!(
            "{} acknowledged writes read back in order",
            acknowledged.len()
        );
        acknowledged.len()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Writes a number; answers its revision if that was acknowledged.
fn put(address: SocketAddr, number: u64) -> Option<i64> {
    let text = format!("writer/{number:012}");
    let body = json!({"key": STANDARD.encode(&text), "value": STANDARD.encode(number.to_string())});
    let answer = post(address, "/v3/kv/put", &body)?;
    answer["header"]["revision"].as_str()?.parse().ok()
}

/// Every number that was written, with its revision.
fn all(address: SocketAddr) -> BTreeMap<u64, i64> {
    let range = json!({"key": STANDARD.encode("writer/"), "range_end": STANDARD.encode("writer0")});
    let answer = (0..20).find_map(|_| {
        let answer = post(address, "/v3/kv/range", &range).filter(|it| it["kvs"].is_array());
        if answer.is_none() {
            std::thread::sleep(Duration::from_millis(500));
        }
        answer
    });
    let answer = answer.expect("what was written can be read");
    let pairs = answer["kvs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|pair| {
            let value = STANDARD.decode(pair["value"].as_str().expect("a value"));
            let value = String::from_utf8(value.expect("base64")).expect("a number");
            let revision = pair["mod_revision"].as_str().expect("a revision");
            (
                value.parse().expect("a number"),
                revision.parse().expect("a number"),
            )
        });
    pairs.collect()
}

/// One question to etcd's JSON gateway; none if it fails in any way.
fn post(address: SocketAddr, path: &str, body: &Value) -> Option<Value> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.0\r\nHost: etcd\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ').nth(1).filter(|code| *code == "200")?;
    serde_json::from_str(body).ok()
}
