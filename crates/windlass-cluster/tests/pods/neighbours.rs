//! Clusters beside each other on one machine.

use std::net::Ipv4Addr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::kubectl::PATIENCE;
use super::ports::ECHO;
use super::stage::{Stage, python};

/// A pod that says what it hears, and where.
async fn echo(stage: &Stage) -> Ipv4Addr {
    let mut main = python("main", ECHO);
    main["readinessProbe"] = json!({"tcpSocket": {"port": 18100}, "periodSeconds": 1});
    stage.pod("one", json!({"containers": [main]})).await;
    let pod = stage.ready("one").await;
    let address = pod.status.and_then(|status| status.pod_ip);
    address.expect("an address").parse().expect("an address")
}

async fn says_what_it_hears(address: Ipv4Addr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect((address, 18100)).await?;
    stream.write_all(b"hello").await?;
    let mut heard = [0; 5];
    stream.read_exact(&mut heard).await?;
    assert_eq!(&heard, b"hello");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_goes_leaves_the_pods_of_another_on_their_network() {
    let (stays, goes) = futures::join!(Stage::new("stays"), Stage::new("goes"));
    let (address, other) = futures::join!(echo(&stays), echo(&goes));
    assert_ne!(address, other);
    goes.stop().await;
    let answer = tokio::time::timeout(PATIENCE, says_what_it_hears(address)).await;
    answer.expect("in time").expect("an answer");
    stays.stop().await;
}
