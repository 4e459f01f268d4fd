//! A long run of generated requests: what was answered, how fast, and what it cost.
//!
//! `make soak` sends a million (`SOAK_REQUESTS` says how many). Nothing is timed or judged but
//! this: every request is answered, nothing panics, and memory does not grow with the number of
//! requests.

mod crowd;
#[path = "../generated/mod.rs"]
mod generated;
mod hostile;
mod scene;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config as Settings, RngAlgorithm, TestRng, TestRunner};
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random};

/// How many requests are sent before everything is there again.
const AFTER: usize = 20;

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.expect("a size")
}

/// What an answer says, with every number the same.
fn message_of(body: &[u8]) -> String {
    let status: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or("no message");
    let mut message = message.replace(|letter: char| letter.is_ascii_digit(), "0");
    while message.contains("00") {
        message = message.replace("00", "0");
    }
    message
}

#[test]
#[ignore = "long: `make soak` runs it"]
fn a_long_run_of_generated_requests() {
    let total: usize = std::env::var("SOAK_REQUESTS")
        .ok()
        .and_then(|total| total.parse().ok())
        .unwrap_or(100_000);
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        eprintln!("{panic}");
    }));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Settings::default(), rng);
    let strategy = generated::any_request();
    let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
    let mut troubles = BTreeMap::new();
    let server = ApiServer::new(Config {
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        random: Random::seeded(1),
        ..Config::default()
    });
    let client = server.in_process(Identity::admin());
    // Memory is compared with that of a server that has seen some of everything.
    let mut before = 0;
    let mut in_requests = std::time::Duration::ZERO;
    for number in 0..total {
        let tree = strategy.new_tree(&mut runner).expect("a request");
        let sent = tree.current();
        if number % AFTER == 0 {
            // What was deleted is made again, or there would soon be nothing left to ask for.
            runtime.block_on(generated::furnish(&client));
        }
        let started = Instant::now();
        let (code, body) = runtime.block_on(generated::send(&client, &sent));
        in_requests += started.elapsed();
        *codes.entry(code).or_default() += 1;
        if code >= 500 {
            let message = message_of(&body);
            let seen = troubles
                .entry((code, message))
                .or_insert_with(|| (0, sent.clone()));
            seen.0 += 1;
        }
        if number == total / 10 {
            before = resident();
        }
    }
    let after = resident();
    println!(
        "{total} requests, {} panics",
        PANICS.load(Ordering::Relaxed)
    );
    for (code, count) in &codes {
        let what = if *code == 0 {
            "no request could be made".to_owned()
        } else {
            code.to_string()
        };
        println!("  {what}: {count}");
    }
    println!("what was answered with 500 and above, each with the first request that was:");
    for ((code, message), (count, sent)) in &troubles {
        println!("  {code} {count} times: {message}");
        println!("    {} {} ({})", sent.method, sent.path, sent.content_type);
        println!("    {}", sent.body);
    }
    println!("  resident: {before} KiB after a tenth of them, {after} KiB at the end");
    let each = in_requests / u32::try_from(total).unwrap_or(u32::MAX);
    println!("  {each:?} a request, on one core");
    println!("  revision {}", server.revision());
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    assert!(
        after < before * 2 + 64 * 1024,
        "memory grew from {before} to {after} KiB"
    );
}
