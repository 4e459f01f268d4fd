//! A server that is killed while it writes has everything it acknowledged when it starts again.
//!
//! Each round starts this very program as a server with writers in it, which print what was
//! acknowledged, kills it with -9 in the middle, and looks what its folder holds.
//! `KILL_ROUNDS` says how many rounds; `make kill-rounds` plays 1,000.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Config, Identity, InProcess};

/// Where the server of a round is told its folder.
const FOLDER: &str = "WINDLASS_KILLED_FOLDER";
const WRITERS: usize = 8;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn send(client: &InProcess, method: &str, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let answer = client.clone().oneshot(request).await.expect("infallible");
    let code = answer.status().as_u16();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("whole")
        .to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// One writer: counts in an object of its own, and makes and deletes another with each count.
async fn write(client: InProcess, writer: usize, start: u64) {
    let counter = format!("counter-{writer}");
    let beside = format!("beside-{writer}");
    for count in start + 1.. {
        let object = json!({"metadata": {"name": counter}, "data": {"count": count.to_string()}});
        let (mut code, _) =
            send(&client, "PUT", &format!("{PATH}/{counter}"), object.clone()).await;
        if code == 404 {
            (code, _) = send(&client, "POST", PATH, object).await;
        }
        assert!(code == 200 || code == 201, "{code}");
        tell(&format!("acknowledged {writer} {count}\n"));
        let object = json!({"metadata": {"name": beside}});
        if count % 2 == 0 {
            send(&client, "POST", PATH, object).await;
        } else {
            send(&client, "DELETE", &format!("{PATH}/{beside}"), Value::Null).await;
        }
    }
}

/// Prints a line in one piece.
fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).expect("somebody listens");
    out.flush().expect("somebody listens");
}

/// What the counters say in a folder.
async fn counts(server: &ApiServer) -> BTreeMap<usize, u64> {
    let client = server.in_process(Identity::admin());
    let (code, list) = send(&client, "GET", PATH, Value::Null).await;
    assert_eq!(code, 200);
    let items = list["items"].as_array().expect("a list").iter();
    let count = |item: &Value| {
        let writer = item["metadata"]["name"]
            .as_str()?
            .strip_prefix("counter-")?;
        let count = item["data"]["count"].as_str()?;
        Some((writer.parse().ok()?, count.parse().ok()?))
    };
    items.filter_map(count).collect()
}

fn open(folder: &Path) -> ApiServer {
    ApiServer::open(Config::default(), folder).expect("the folder can be read")
}

/// The server of a round; it runs until it is killed.
fn serve(folder: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        let server = open(folder);
        let counts = counts(&server).await;
        let writers = (0..WRITERS).map(|writer| {
            let start = counts.get(&writer).copied().unwrap_or_default();
            tokio::spawn(write(server.in_process(Identity::admin()), writer, start))
        });
        futures::future::join_all(writers).await;
    });
}

/// Kills a server after a while; tells what it acknowledged.
fn round(folder: &Path, after: Duration) -> BTreeMap<usize, u64> {
    let mut server = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "killed_in_the_middle_nothing_acknowledged_is_lost",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let lines = BufReader::new(server.stdout.take().expect("its output")).lines();
    let mut acknowledged = BTreeMap::new();
    let mut killed_at: Option<Instant> = None;
    for line in lines {
        let line = line.expect("text");
        let mut words = line.split(' ');
        if words.next() != Some("acknowledged") {
            continue;
        }
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        // A line that was cut off has fewer words, or none of them whole.
        if let (Some(writer), Some(count)) = (number(), number()) {
            acknowledged.insert(usize::try_from(writer).expect("few writers"), count);
        }
        let now = Instant::now();
        if now >= *killed_at.get_or_insert(now + after) {
            let _ = server.kill();
        }
    }
    server.wait().expect("it ended");
    acknowledged
}

#[test]
fn killed_in_the_middle_nothing_acknowledged_is_lost() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return serve(Path::new(&folder));
    }
    let rounds = std::env::var("KILL_ROUNDS").ok();
    let rounds: usize = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(100);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let (mut writes, started) = (0, Instant::now());
    let mut before = BTreeMap::new();
    for number in 0..rounds {
        let after = Duration::from_micros(random.random_range(0..30_000));
        let acknowledged = round(folder.path(), after);
        let server = open(folder.path());
        let found = runtime.block_on(counts(&server));
        for (writer, count) in &acknowledged {
            let stored = found.get(writer).copied().unwrap_or_default();
            assert!(
                stored == *count || stored == count + 1,
                "round {number}: writer {writer} was told {count}, {stored} is stored"
            );
            writes += count - before.get(writer).copied().unwrap_or_default();
        }
        before = found;
    }
    println!(
        "{rounds} rounds in {:?}: {writes} acknowledged writes, none lost",
        started.elapsed()
    );
    assert!(writes > 0);
}
