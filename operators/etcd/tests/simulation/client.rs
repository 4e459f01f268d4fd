//! The real client: what it says of members that are there, that are not, and that hang.

use std::time::{Duration, Instant};

use etcd_operator::etcd::{Call, Etcd, EtcdClient, EtcdError};
use rustix::process::{Pid, Signal, kill_process};

use crate::real::{RealProcess, folder, free_ports, programs, until};
use crate::world::Arguments;

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(test);
}

/// The arguments of members of one new cluster.
fn members(count: usize) -> Vec<Arguments> {
    let ports = free_ports(2 * count);
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let cluster = (0..count).map(|n| (format!("m{n}"), url(ports[2 * n])));
    let cluster: std::collections::BTreeMap<String, String> = cluster.collect();
    let member = |n: usize| Arguments {
        name: format!("m{n}"),
        token: "client".to_owned(),
        existing: false,
        initial_cluster: cluster.clone(),
        peer_url: url(ports[2 * n]),
        client_url: url(ports[2 * n + 1]),
        data_dir: String::new(),
    };
    (0..count).map(member).collect()
}

async fn leader_of(client: EtcdClient, endpoint: &str) -> Option<u64> {
    client
        .status(endpoint)
        .await
        .ok()
        .and_then(|status| status.leader)
}

#[test]
fn a_member_that_is_not_there_is_unreachable_and_named() {
    run(async {
        let port = free_ports(1)[0];
        let nobody = format!("http://127.0.0.1:{port}");
        let client = EtcdClient::default();
        let error = client
            .members(std::slice::from_ref(&nobody))
            .await
            .unwrap_err();
        let EtcdError::Unreachable { call, message } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*call, Call::Members);
        assert!(message.contains(&nobody), "{message}");
        let url = "https://127.0.0.1:1".to_owned();
        let error = client.members(&[url]).await.unwrap_err();
        assert!(matches!(error, EtcdError::Unreachable { .. }), "{error:?}");
    });
}

#[test]
fn another_member_is_asked_when_the_first_is_gone_and_none_without_a_majority() {
    run(async {
        for program in programs() {
            let (place, client) = (folder(), EtcdClient::default());
            let all = members(3);
            let mut processes: Vec<Option<RealProcess>> = all
                .iter()
                .map(|one| {
                    Some(RealProcess::start(
                        &program,
                        &place.path().join(&one.name),
                        one,
                    ))
                })
                .collect();
            let urls: Vec<String> = all.iter().map(|one| one.client_url.clone()).collect();
            let up = until(Duration::from_secs(20), async || {
                leader_of(client, &urls[0]).await.is_some() && client.members(&urls).await.is_ok()
            });
            assert!(
                up.await,
                "three members of {} have no leader",
                program.display()
            );
            processes[0] = None;
            let again = until(Duration::from_secs(10), async || {
                client.members(&urls).await.is_ok()
            });
            assert!(again.await, "two of three members do not answer");
            client.put(&urls[1], "key", "value").await.expect("a write");
            assert_eq!(
                client.get(&urls[2], "key").await,
                Ok(Some("value".to_owned()))
            );
            processes[1] = None;
            let lost = until(Duration::from_secs(10), async || {
                leader_of(client, &urls[2]).await.is_none()
            });
            assert!(lost.await, "one of three members still has a leader");
            let before = Instant::now();
            let error = client.members(&urls).await.unwrap_err();
            assert!(matches!(error, EtcdError::NoQuorum { .. }), "{error:?}");
            assert!(
                before.elapsed() < Duration::from_secs(3),
                "it says so at once"
            );
            let status = client.status(&urls[2]).await.expect("its own view");
            assert!(!status.errors.is_empty(), "{status:?}");
        }
    });
}

#[test]
fn a_member_that_hangs_is_given_up_and_a_change_is_not_sent_to_a_second() {
    run(async {
        for program in programs() {
            let (place, client) = (folder(), EtcdClient::default());
            let all = members(1);
            let other = &members(1)[0];
            let stuck = RealProcess::start(&program, &place.path().join("stuck"), &all[0]);
            let _free = RealProcess::start(&program, &place.path().join("free"), other);
            let urls = [all[0].client_url.clone(), other.client_url.clone()];
            for url in &urls {
                let url = url.clone();
                let up = until(Duration::from_secs(20), async || {
                    client.members(std::slice::from_ref(&url)).await.is_ok()
                });
                assert!(up.await, "{} does not start", program.display());
            }
            let pid = Pid::from_raw(stuck.id()).expect("a process id");
            kill_process(pid, Signal::STOP).expect("it stops");
            // On a busy machine it still answers for a moment.
            let stops = until(Duration::from_secs(20), async || is_stopped(stuck.id()));
            assert!(stops.await, "{} does not stop", program.display());
            // A question goes on to the next; a change may have been carried out.
            let found = client.members(&urls).await.expect("the second answers");
            assert_eq!(found.members.len(), 1);
            let peer = ["http://127.0.0.1:1".to_owned()];
            let error = client.add_member(&urls, &peer, true).await.unwrap_err();
            assert!(error.may_have_been_applied(), "{error:?}");
            let found = client
                .members(&urls[1..])
                .await
                .expect("the second answers");
            assert_eq!(found.members.len(), 1, "the second was never asked");
            kill_process(pid, Signal::CONT).expect("it goes on");
        }
    });
}

/// Whether every thread of a process has stopped.
fn is_stopped(process: i32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return false;
    };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // Behind the name, which may contain anything.
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    })
}

/// A snapshot in memory, without its hash.
struct InMemory(bytes::Bytes);

#[async_trait::async_trait]
impl etcd_operator::snapshot::ReadAt for InMemory {
    type Error = std::convert::Infallible;

    async fn read_at(&self, offset: u64, length: u64) -> Result<bytes::Bytes, Self::Error> {
        let at = |place: u64| usize::try_from(place).expect("a place");
        Ok(self.0.slice(at(offset)..at(offset + length)))
    }
}

#[test]
fn snapshot_of_a_real_member_is_whole_and_its_revision_is_exact() {
    use etcd_operator::snapshot::{Check, facts};
    use futures::StreamExt;

    run(async {
        for program in programs() {
            let (place, client) = (folder(), EtcdClient::default());
            let all = members(1);
            let _process = RealProcess::start(&program, &place.path().join("m"), &all[0]);
            let url = &all[0].client_url;
            let up = until(Duration::from_mins(1), async || {
                client.members(std::slice::from_ref(url)).await.is_ok()
            });
            assert!(up.await, "{} does not start", program.display());
            // More than one leaf, and values that do not fit into a page.
            for number in 0..300 {
                let value = "x".repeat(if number % 50 == 0 { 20_000 } else { 100 });
                let key = format!("key-{number:04}");
                client.put(url, &key, &value).await.expect("a write");
            }
            let (mut check, mut file, mut left) = (Check::default(), Vec::new(), None);
            let mut snapshot = client.snapshot(url).await.expect("a snapshot");
            while let Some(chunk) = snapshot.next().await {
                let chunk = chunk.expect("a piece");
                check.update(&chunk.blob);
                file.extend_from_slice(&chunk.blob);
                left = Some(chunk.remaining);
            }
            assert_eq!(left, Some(0));
            let checked = check.finish().expect("a snapshot that is whole");
            let database = checked.bytes - 32;
            let found = facts(&InMemory(file.into()), database)
                .await
                .expect("facts");
            let status = client.status(url).await.expect("a status");
            assert_eq!((found.revision, found.revision), (301, status.revision));
            assert_eq!(found.compact_revision, 0);
            assert!(!found.auth_enabled);
            let line = crate::real::minor(&program);
            assert_eq!(found.cluster_version, format!("{line}.0"));
        }
    });
}
