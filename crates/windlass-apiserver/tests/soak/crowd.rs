//! Clients that hold what they can, over real connections, while another goes on writing.
//!
//! What is judged: every write of the other is taken, none is told to come again, and the memory of
//! the server, with all its clients in the same process, stays within a bound. How long the writes
//! took is printed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::hostile::without_rights;
use crate::resident;
use crate::scene::{Client, Scene, begin, send, whole, with_clients};

const MASTERS: &str = "system:masters";
const ACCOUNTS: &str = "system:serviceaccounts";
/// One without rights.
const NOBODY: &str = "system:serviceaccount:default:nobody";
/// One that may read and write `ConfigMap`s.
const SOMEBODY: &str = "system:serviceaccount:default:somebody";

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// How much more memory there may be than before, in KiB: what a hundred bodies of 3 MiB are, some
/// of which are being worked on, and as much for everything else.
const MOST_KIB: usize = 768 * 1024;

/// How many objects were written so far.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Looks again and again how much memory the process has.
struct Watched {
    peak: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    before: usize,
}

impl Watched {
    fn start() -> Self {
        let (peak, stop) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (seen, stopped) = (peak.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                seen.fetch_max(resident(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Self {
            peak,
            stop,
            thread,
            before: resident(),
        }
    }

    /// How many KiB more there were at most.
    fn finish(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        self.peak
            .load(Ordering::Relaxed)
            .saturating_sub(self.before)
    }
}

fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": data}})
}

/// A namespace in which somebody may write.
async fn furnish(scene: &Scene) {
    let mut admin = scene.client("admin", MASTERS, None).await;
    let api = "rbac.authorization.k8s.io";
    let rbac = format!("/apis/{api}/v1/namespaces/default");
    let role = json!({"metadata": {"name": "maps"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
    ]});
    let binding = json!({
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": api, "kind": "Role", "name": "maps"},
        "subjects": [{"apiGroup": api, "kind": "User", "name": SOMEBODY}],
    });
    let namespace = json!({"metadata": {"name": "default"}});
    for (path, body) in [
        ("/api/v1/namespaces", namespace),
        (&*format!("{rbac}/roles"), role),
        (&*format!("{rbac}/rolebindings"), binding),
    ] {
        let code = send(&mut admin, "POST", path, &body).await;
        assert!(code == 201 || code == 409, "{path}: {code}");
    }
}

/// Writes so many objects, one after the other; prints how long they took.
async fn write(scene: &Scene, count: usize) {
    let mut client = scene.client(SOMEBODY, ACCOUNTS, None).await;
    let mut took = Vec::new();
    for number in 0..count {
        let name = format!("written-{}", WRITTEN.fetch_add(1, Ordering::Relaxed));
        let began = Instant::now();
        let code = send(&mut client, "POST", MAPS, &config_map(&name, "a")).await;
        took.push(began.elapsed());
        assert_eq!(code, 201, "write {number}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    took.sort();
    let (half, last) = (took[count / 2], took[count - 1]);
    println!("  {count} writes of another: half within {half:?}, the slowest {last:?}");
}

/// Connections on which nothing comes: without a handshake, with half a request, with a body that
/// trickles.
async fn held_connections(scene: &Scene) -> Vec<Box<dyn std::any::Any + Send>> {
    let mut held: Vec<Box<dyn std::any::Any + Send>> = Vec::new();
    for _ in 0..200 {
        held.push(Box::new(scene.tcp().await));
    }
    for _ in 0..20 {
        let mut stream = scene.tls(NOBODY, ACCOUNTS, b"http/1.1").await;
        let half = format!("POST {REVIEWS} HTTP/1.1\r\nHost: localhost\r\nContent-Le");
        stream.write_all(half.as_bytes()).await.expect("it is sent");
        held.push(Box::new(stream));
    }
    let mut client = scene.client(NOBODY, ACCOUNTS, None).await;
    for _ in 0..150 {
        let mut client = client.clone();
        held.push(Box::new(tokio::spawn(async move {
            let bytes = futures::stream::unfold((), |()| async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                Some((Ok(http_body::Frame::data(Bytes::from_static(b" "))), ()))
            });
            let body = StreamBody::new(bytes).boxed_unsync();
            begin(&mut client, "POST", REVIEWS, body).await
        })));
    }
    client.ready().await.expect("the connection lives");
    held
}

#[test]
#[ignore = "it measures: `make soak` runs it"]
fn held_connections_and_trickled_bodies_keep_nobody_from_writing() {
    let scene = Scene::start();
    let watched = Watched::start();
    with_clients(async {
        furnish(&scene).await;
        let held = held_connections(&scene).await;
        write(&scene, 300).await;
        drop(held);
    });
    let grown = watched.finish();
    println!("  {grown} KiB more at most, of {MOST_KIB}");
    assert!(grown < MOST_KIB, "memory grew by {grown} KiB");
    scene.stop();
}

#[test]
#[ignore = "it measures: `make soak` runs it"]
fn expensive_bodies_of_an_account_without_rights_keep_nobody_from_writing() {
    let scene = Scene::start();
    let bodies: Vec<Bytes> = without_rights()
        .into_iter()
        .filter(|hostile| hostile.media_type == "application/json")
        .map(|hostile| hostile.body.into())
        .collect();
    let watched = Watched::start();
    let answers = with_clients(async {
        furnish(&scene).await;
        let stop = Arc::<AtomicBool>::default();
        let mut floods = Vec::new();
        for connection in 0..8 {
            let client = scene.client(NOBODY, ACCOUNTS, None).await;
            for place in 0..40 {
                let (mut client, stop) = (client.clone(), stop.clone());
                let body = bodies[(connection + place) % bodies.len()].clone();
                floods.push(tokio::spawn(async move {
                    let mut answers = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let answer = begin(&mut client, "POST", REVIEWS, whole(body.clone())).await;
                        let Ok(answer) = answer else { break };
                        answers.push(answer.status().as_u16());
                        let _ = answer.into_body().collect().await;
                    }
                    answers
                }));
            }
        }
        write(&scene, 300).await;
        stop.store(true, Ordering::Relaxed);
        let mut answers = std::collections::BTreeMap::<u16, usize>::new();
        for flood in floods {
            for code in flood.await.expect("no panic") {
                *answers.entry(code).or_default() += 1;
            }
        }
        answers
    });
    let grown = watched.finish();
    println!("  meanwhile the account was answered {answers:?}");
    println!("  {grown} KiB more at most, of {MOST_KIB}");
    assert!(grown < MOST_KIB, "memory grew by {grown} KiB");
    scene.stop();
}

/// Asks for something on every stream that a connection may have, and reads nothing.
async fn read_nothing(mut client: Client, path: &str, streams: usize) -> Vec<u16> {
    let mut asked = Vec::new();
    for _ in 0..streams {
        let answer = begin(&mut client, "GET", path, whole(Bytes::new())).await;
        asked.push(answer);
    }
    let codes = asked
        .iter()
        .map(|answer| answer.as_ref().map_or(0, |answer| answer.status().as_u16()));
    let codes = codes.collect();
    // Held for as long as the test lasts: what is dropped would be given back.
    std::mem::forget((client, asked));
    codes
}

#[test]
#[ignore = "it measures: `make soak` runs it"]
fn answers_that_nobody_reads_hold_little_memory() {
    let scene = Scene::start();
    with_clients(async {
        furnish(&scene).await;
        let mut client = scene.client(SOMEBODY, ACCOUNTS, None).await;
        // 50 MB.
        let text = "x".repeat(100_000);
        for number in 0..500 {
            let map = config_map(&format!("large-{number}"), &text);
            assert_eq!(send(&mut client, "POST", MAPS, &map).await, 201);
        }
    });
    let watch = format!("{MAPS}?watch=1&resourceVersion=0");
    let table = format!("{MAPS}?limit=500");
    for (what, user, path) in [
        ("watches of everything from 0", SOMEBODY, &*watch),
        ("lists of everything", SOMEBODY, &*table),
        ("the document of all types", NOBODY, "/openapi/v2"),
        ("the document of one group", NOBODY, "/openapi/v3/api/v1"),
    ] {
        let watched = Watched::start();
        let codes = with_clients(async {
            let asked = (0..8).map(|_| async {
                let client = scene.client(user, ACCOUNTS, Some(0)).await;
                read_nothing(client, path, 200).await
            });
            let asked: Vec<Vec<u16>> = futures::stream::iter(asked)
                .buffer_unordered(8)
                .collect()
                .await;
            write(&scene, 100).await;
            asked.concat()
        });
        let grown = watched.finish();
        let taken = codes.iter().filter(|code| **code == 200).count();
        println!(
            "  {what}: {taken} of {} begun and not read, {grown} KiB more at most, of {MOST_KIB}",
            codes.len()
        );
        assert!(grown < MOST_KIB, "{what}: memory grew by {grown} KiB");
    }
    scene.stop();
}
